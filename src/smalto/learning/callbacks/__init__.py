"""Callbacks: functions and objects that `learn` calls after every step."""
