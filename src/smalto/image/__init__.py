"""Dictionaries for pictures: patches as samples, denoising, inpainting and video."""

from smalto.image.averaging import PatchAverage, reconstruct
from smalto.image.demosaic import demosaic
from smalto.image.denoise import denoise
from smalto.image.fixed_atoms import cosine_atoms, natural_atoms
from smalto.image.frame_learner import FrameLearner
from smalto.image.inpaint import inpaint
from smalto.image.luminance import luminance
from smalto.image.noise import estimate_noise
from smalto.image.patch_source import PatchSource
from smalto.image.poisson_noise import PoissonNoise, estimate_poisson_noise
from smalto.image.reading import read_picture
from smalto.image.text_mask import text_mask
from smalto.image.video import denoise_video
from smalto.image.video_filling import inpaint_video

__all__ = [
    "FrameLearner",
    "PatchAverage",
    "PatchSource",
    "PoissonNoise",
    "cosine_atoms",
    "demosaic",
    "denoise",
    "denoise_video",
    "estimate_noise",
    "estimate_poisson_noise",
    "inpaint",
    "inpaint_video",
    "luminance",
    "natural_atoms",
    "read_picture",
    "reconstruct",
    "text_mask",
]
