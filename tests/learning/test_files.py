"""States and models as files: whole, exact, and refused when they are not."""

import json
import struct
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import examples
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from smalto import learn
from smalto.coders import (
    L0,
    OMP,
    Bridge,
    ErrorBound,
    GroupLasso,
    JointLasso,
    JointOMP,
    L1Ball,
    Lasso,
    Ridge,
    TreeLasso,
)
from smalto.constraints import Constraint, ElasticNetBall, FusedLassoBall, L2Ball, Simplex
from smalto.learners import SGD, Batch, Continuation, Online, Replacement
from smalto.learning.files.as_json import from_json, known, register, to_json
from smalto.learning.files.container import read_file, write_file
from smalto.learning.files.model import Model
from smalto.learning.files.state_file import load_state, save_state

X = np.random.default_rng(0).standard_normal((300, 10))
BUILT_IN = set(known())

SETTINGS = [
    Lasso(0.1, ridge=0.2, positive=True), Lasso(mean_nonzeros=3), L1Ball(2.0), L1Ball([1.0, 2.5]),
    ErrorBound(0.1), OMP(max_nonzeros=3, eps=0.5), L0(0.3), Ridge(0.1), L2Ball(positive=True),
    ElasticNetBall(0.1), ElasticNetBall(density=0.3),
    FusedLassoBall(0.1, 0.2), Simplex(), Online(), Online(memory="replace", batch_size=7),
    Online(rho=15.0, keep=0.95, kappa1=0.1), Replacement(random=True),
    Bridge(0.1, 0.5), GroupLasso(0.1, [0, 0, 1, 1], group_weights=[1.0, 2.0]), JointLasso(0.2),
    JointOMP(max_nonzeros=2), TreeLasso(0.1, parents=[-1, 0, 0, 1]), Lasso(0.1, penalty_weights=[1, np.inf]),
    Batch(sweeps=2), SGD(1.0, 2.0), Replacement(idle=float("inf")), Continuation(0.5, 7),
]  # fmt: skip


@pytest.mark.parametrize("setting", SETTINGS, ids=repr)
def test_settings_survive(setting):
    arrays = {}
    text = json.dumps(to_json(setting, arrays, "it"), allow_nan=False)
    back = from_json(json.loads(text), arrays)
    assert back == setting
    assert vars(back) == vars(setting)


def test_every_kind_of_setting_is_tried():
    assert {type(setting).__name__ for setting in SETTINGS} == BUILT_IN


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.lists(inner).map(tuple),
        max_leaves=8,
    )
)
def test_plain_values_survive(value):
    assert from_json(json.loads(json.dumps(to_json(value, {}, "it"))), {}) == value


def same(a, b):
    for key, value in vars(a).items():
        other = getattr(b, key)
        if key == "stats":
            for mine, yours in zip(value, other, strict=True):
                same(mine, yours)
        elif key == "store":
            assert (value is None) == (other is None)
            if value is not None:
                same(value, other)
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, other)
            assert value.dtype == other.dtype
        else:
            assert repr(value) == repr(other)  # SGD's surrogate is NaN, on both sides


RUNS = [
    {"coder": Lasso(mean_nonzeros=3), "constraint": ElasticNetBall(density=0.5)},
    {"learner": Online(memory="replace", batch_size=40)},
    {"learner": Batch(), "coder": OMP(max_nonzeros=2)},
    {"learner": SGD(batch_size=30)},
]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_state_survives_bit_for_bit(run, dtype, tmp_path):
    path = tmp_path / "state.safetensors"
    state = learn(X.astype(dtype), 12, **run, max_steps=5, random_state=0).state
    save_state(state, path)
    loaded = load_state(path)
    same(state, loaded)
    assert not (tmp_path / ".state").exists()
    assert [file.name for file in tmp_path.iterdir()] == ["state.safetensors"]
    # Any reader of safetensors can have the numbers.
    np.testing.assert_array_equal(load_file(path)["state.D"], state.D)
    a = learn(X.astype(dtype), 12, max_steps=11, state=state)
    b = learn(X.astype(dtype), 12, max_steps=11, state=loaded)
    np.testing.assert_array_equal(a.D, b.D)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "state.safetensors"
    learner = Online(memory="replace", batch_size=50)
    save_state(learn(X, 12, learner=learner, max_steps=3, random_state=0).state, path)
    return path


@examples(60)
@given(data=st.data())
def test_truncated_and_altered_files_are_refused(whole, data):
    content = bytearray(whole.read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    bad = whole.with_name("bad.safetensors")
    bad.write_bytes(content)
    header = 8 + struct.unpack("<Q", whole.read_bytes()[:8])[0]
    try:
        state = load_state(bad)
    except ValueError:
        return
    # What is left are changes that say the same: of the spaces that fill the header.
    assert len(content) == whole.stat().st_size
    assert content[header:] == whole.read_bytes()[header:]
    same(state, load_state(whole))


def rewrite(source, target, change):
    """A file with other contents and a right checksum: what validation has to find."""
    kind, content, arrays = read_file(source, ("state",))
    fields = content["fields"]
    change(fields, arrays)
    write_file(target, kind, content, arrays)


CHANGES = {
    "D is float64 of shape": lambda f, a: a.update({"state.D": a["state.D"][0]}),
    "last_used is float64": lambda f, a: a.update({"state.last_used": np.zeros(12)}),
    "stats.0..A is float64 of shape": lambda f, a: a.update({"state.stats.0.A": np.zeros((3, 3))}),
    "contains NaN": lambda f, a: a["state.D"].__setitem__((1, 1), np.nan),
    "store.indices name atoms": lambda f, a: a["state.store.indices"].__setitem__((0, 0), 99),
    "store.counts are outside": lambda f, a: a["state.store.counts"].__setitem__(0, 1000),
    "store.counts is int32 of": lambda f, a: a.update(
        {"state.store.counts": a["state.store.counts"][:5]}
    ),
    "step is -3": lambda f, a: f.update(step=-3),
    "step is 1.5, expected": lambda f, a: f.update(step=1.5),
    "place is 301, beyond n_rows=300": lambda f, a: f.update(place=301),
    "seconds is inf": lambda f, a: f.update(seconds={"float": "inf"}),
    "with the settings": lambda f, a: f.pop("epoch"),
    "its statistics or stored codes are not those of": lambda f, a: f["learner"]["fields"].update(
        memory="all"
    ),
    "whose memory is 'none'": lambda f, a: f["learner"]["fields"].update(memory="none"),
    "an invalid Lasso: lam must be": lambda f, a: f["coder"]["fields"].update(lam=-1.0),
    "whose positive is 'yes'": lambda f, a: f["coder"]["fields"].update(positive="yes"),
    "a Popen, which this program does not know": lambda f, a: f["coder"].update(kind="Popen"),
    "a setting that cannot be read": lambda f, a: f.update(coder={"eval": "print(1)"}),
    "whose coder is Online": lambda f, a: f.update(coder=f["learner"]),
    "learner must be a learner": lambda f, a: f.update(learner=f["coder"]),
    "continuation is 1, expected": lambda f, a: f.update(continuation=1),
    "replacement is 1, expected": lambda f, a: f.update(replacement=1),
    "learner is Online.batch_size=None.* all settings decided": lambda f, a: f["learner"][
        "fields"
    ].update(batch_size=None),
    "sweeps must be <= 10000": lambda f, a: f["learner"]["fields"].update(sweeps=10**30),
    "samples is 1000000000000000000000000000000": lambda f, a: f.update(samples=10**30),
    "epoch is 9007199254740993": lambda f, a: f.update(epoch=2**53 + 1),
    "scale is 10+, expected": lambda f, a: _stats(f).update(scale=10**30),
    "scale is 0.0, expected": lambda f, a: _stats(f).update(scale=0.0),
    "scale is 1e-300, expected": lambda f, a: _stats(f).update(scale=1e-300),
    "weight is -1.0": lambda f, a: _stats(f).update(weight=-1.0),
    "code_sum is int32": lambda f, a: a.update({"state.stats.0.code_sum": np.zeros(12, np.int32)}),
    "code_sum is empty": lambda f, a: a.update({"state.stats.0.code_sum": np.zeros(0)}),
    "sample_sum is empty": lambda f, a: a.update({"state.stats.0.sample_sum": np.zeros(0)}),
    "sample_sum contains NaN": lambda f, a: a["state.stats.0.sample_sum"].__setitem__(2, np.nan),
    "stats.0..A is -5.0": lambda f, a: a["state.stats.0.A"].__setitem__((3, 3), -5.0),
    "worst_cost is -1.0": lambda f, a: a["state.worst_cost"].__setitem__(0, -1.0),
    "worst_cost is empty": lambda f, a: a.update(
        {"state.worst_cost": np.zeros(0), "state.worst": np.zeros((0, 10))}
    ),
    "last_used is -7": lambda f, a: a["state.last_used"].__setitem__(0, -7),
    "last_used is 99999": lambda f, a: a["state.last_used"].__setitem__(0, 99999),
    "surrogate is inf": lambda f, a: f.update(surrogate={"float": "inf"}),
    "n_rows is 0": lambda f, a: f.update(n_rows=0, place=0),
    "store.indices do not rise": lambda f, a: a["state.store.indices"].fill(1),
    "coder is Lasso.lam=None": lambda f, a: f["coder"]["fields"].update(lam=None),
    "penalty_weights of the coder is for 3 atoms": lambda f, a: f["coder"]["fields"].update(
        penalty_weights={"tuple": [1.0, 2.0, 3.0]}
    ),
    "gamma is not decided": lambda f, a: f.update(
        constraint={
            "kind": "ElasticNetBall",
            "fields": {"gamma": None, "positive": False, "density": 0.3},
        }
    ),
    "history is of steps": lambda f, a: f.update(step=0),
}


def _stats(fields):
    return fields["stats"]["tuple"][0]["fields"]


@pytest.mark.parametrize("message", CHANGES)
def test_states_that_cannot_be_are_refused(message, whole):
    bad = whole.with_name("bad.safetensors")
    rewrite(whole, bad, CHANGES[message])
    with pytest.raises(ValueError, match=message):
        load_state(bad)


def test_foreign_files_are_refused(whole, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_state(tmp_path / "gone")
    for content in (b"", b"text", b"\x00" * 100, struct.pack("<Q", 1 << 60) + b"{}"):
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(ValueError, match="not a complete safetensors file"):
            load_state(tmp_path / "x")
    save_file({"D": X}, tmp_path / "x")
    with pytest.raises(ValueError, match="was not written by smalto"):
        load_state(tmp_path / "x")
    with safe_open(whole, framework="numpy") as file:
        metadata = file.metadata()
    save_file(load_file(whole), tmp_path / "x", {**metadata, "format_version": "2"})
    with pytest.raises(ValueError, match=r"format version 2 \(of smalto .*reads version 1"):
        load_state(tmp_path / "x")
    with pytest.raises(ValueError, match="not a complete safetensors file"):
        load_state(tmp_path)


def test_the_model_of_a_result_is_that_of_its_state():
    X = np.random.default_rng(0).standard_normal((50, 6))
    result = learn(X, 4, Lasso(0.5), random_state=0)
    model, wanted = Model.of(result, {"a": 1}), Model.of(result.state, {"a": 1})
    np.testing.assert_array_equal(model.D, wanted.D)
    assert (model.coder, model.info) == (wanted.coder, wanted.info)
    with pytest.raises(TypeError, match=r"state must be a result of learn, .*, got 3"):
        Model.of(3)


def test_models(whole, tmp_path):
    state = load_state(whole)
    model = Model.of(state, info={"patch": [8, 8], "centred": True})
    path = tmp_path / "model.safetensors"
    model.save(path)
    loaded = Model.load(path)
    np.testing.assert_array_equal(loaded.D, model.D)
    assert (loaded.coder, loaded.constraint, loaded.info) == (
        model.coder, model.constraint, model.info,
    )  # fmt: skip
    np.testing.assert_array_equal(loaded.encode(X).toarray(), model.encode(X).toarray())
    np.testing.assert_array_equal(Model.load(whole).D, model.D)  # a checkpoint has one too
    with pytest.raises(ValueError, match=r"holds a smalto\.model, expected a smalto\.state"):
        load_state(path)
    with pytest.raises(ValueError, match="D must be float32 or float64"):
        Model(np.arange(4), state.coder, state.constraint)
    write_file(path, "model", {"coder": None}, {"D": model.D})
    with pytest.raises(ValueError, match="does not hold a valid model"):
        Model.load(path)


class Plain(Constraint):
    def project(self, atom):
        atom /= max(1.0, float(np.linalg.norm(atom)))

    def gauge(self, atom):
        return float(np.linalg.norm(atom))


def test_constraints_of_ones_own_are_registered(tmp_path):
    @dataclass(frozen=True)
    class Mine(Constraint):
        size: float = 1.0

        def project(self, atom):
            atom /= max(self.size, float(np.linalg.norm(atom)))

        def gauge(self, atom):
            return float(np.linalg.norm(atom)) / self.size

    state = learn(X, 12, constraint=Mine(), max_steps=2, random_state=0).state
    with pytest.raises(TypeError, match="Mine cannot be saved: make it a frozen dataclass"):
        save_state(state, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
    register(Mine)
    save_state(state, tmp_path / "x")
    assert load_state(tmp_path / "x").constraint == Mine()
    with pytest.raises(TypeError, match="only frozen dataclasses"):
        register(Plain)
    with pytest.raises(ValueError, match="the name Lasso is taken"):
        register(dataclass(frozen=True)(type("Lasso", (), {})))


def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "x"
    write_file(path, "state", {}, {"D": X})
    before = path.read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("smalto.learning.files.container.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_file(path, "state", {}, {"D": 2 * X}, keep=3)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_older_files_are_kept(tmp_path):
    path = tmp_path / "x"
    for i in range(5):
        write_file(path, "state", {"i": i}, {})
        assert read_file(path, ("state",))[1] == {"i": i}
    for i in range(5, 10):
        write_file(path, "state", {"i": i}, {}, keep=3)
    kept = {file.name: read_file(file, ("state",))[1]["i"] for file in tmp_path.iterdir()}
    assert kept == {"x": 9, "x.1": 8, "x.2": 7}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("mean_nonzeros", 1e300),
        ("penalty_weights", {"tuple": []}),
        ("lam", {"kind": "Unknown", "fields": {}}),
    ],
)
def test_a_forged_coder_is_refused_by_the_name_of_its_field(field, value, tmp_path):
    path = tmp_path / "forged.safetensors"
    settings = {
        "coder": to_json(Lasso(0.5), {}, "coder"),
        "constraint": to_json(L2Ball(), {}, "constraint"),
        "info": {},
    }
    settings["coder"]["fields"][field] = value
    write_file(path, "model", settings, {"D": np.eye(4)})
    with pytest.raises(ValueError, match=rf"does not hold a valid model: .*{field}"):
        Model.load(path)


def _model(**info):
    return Model(np.eye(3), Lasso(0.1), L2Ball(), info)


def test_a_place_that_cannot_hold_a_file_is_named(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"is a folder: give the name of a file$"):
        _model().save(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no folder .*none for m.safetensors: create it"):
        _model().save(tmp_path / "none" / "m.safetensors")
    path = tmp_path / ("m" * 300)
    with pytest.raises(OSError, match="too long") as error:
        _model().save(path)
    assert error.value.filename == str(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (np.ones(3), TypeError, r"info\['x'\] must be made of strings.* an array of shape \(3,\)"),
        ([1, {2, 3}], TypeError, r"info\['x'\]\[1\] must be .* got \{2, 3\}"),
        ({"y": np.int64(3)}, TypeError, r"info\['x'\]\['y'\] must be .*\.item\(\)"),
        ({1: 2}, TypeError, r"each key of info\['x'\] must be a string, got 1"),
        (np.nan, ValueError, r"info\['x'\] must be finite, got nan"),
    ],
)
def test_info_that_a_file_cannot_hold_is_named(value, error, message, tmp_path):
    with pytest.raises(error, match=message):
        _model(x=value).save(tmp_path / "m.safetensors")
    assert list(tmp_path.iterdir()) == []
