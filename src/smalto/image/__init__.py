"""Pictures: their patches as samples, and what dictionaries do for them."""

from smalto.image.damage import text_mask
from smalto.image.denoise import denoise
from smalto.image.inpaint import inpaint
from smalto.image.noise import estimate_noise
from smalto.image.overlap import PatchAverage, reconstruct
from smalto.image.patches import PatchSource
from smalto.image.pictures import luminance, read_picture
from smalto.image.video import FrameLearner, denoise_video

__all__ = [
    "FrameLearner",
    "PatchAverage",
    "PatchSource",
    "denoise",
    "denoise_video",
    "estimate_noise",
    "inpaint",
    "luminance",
    "read_picture",
    "reconstruct",
    "text_mask",
]
