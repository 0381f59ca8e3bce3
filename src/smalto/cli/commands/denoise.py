"""``smalto denoise``: remove noise from pictures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smalto.checks import Array
from smalto.cli.errors import fail
from smalto.cli.films import check_film_options, is_film, restore_film
from smalto.cli.inputs import open_picture
from smalto.cli.option_types import (
    Atoms,
    Compare,
    Force,
    Jobs,
    ModelFile,
    Patch,
    PictureFiles,
    Range,
    ReportFile,
    RestoredFile,
    Seed,
    Threads,
)
from smalto.cli.picture_tasks import plan_of
from smalto.cli.restoration import (
    Restored,
    Settings,
    check_values,
    dictionary_settings,
    naming_options,
    restore_all,
)

if TYPE_CHECKING:
    from smalto.image import PoissonNoise
    from smalto.image.files.picture_file import PictureFile

_LOW = 4.0  # times below the estimate: then a given sigma is used, and said to be low


def denoise(
    pictures: PictureFiles,
    out: RestoredFile = None,
    sigma: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Standard deviation of the noise, in levels of the file: 0 to 255 with 8 bits, 0 to "
            "65535 with 16 bits, values as they are in files of floats.",
            show_default="estimated",
        ),
    ] = None,
    sure: Annotated[
        bool,
        typer.Option("--sure", help="Use --sigma even if it is far from what the picture shows."),
    ] = False,
    sigma_map: Annotated[
        Path | None,
        typer.Option(
            help="A picture or .npy file of the same size with that of each pixel.",
            show_default=False,
        ),
    ] = None,
    poisson: Annotated[
        bool,
        typer.Option(
            "--poisson",
            help="The noise of a camera, stronger where there is more light; for pictures that are "
            "linear in the light. It is estimated unless --gain is given.",
        ),
    ] = False,
    gain: Annotated[
        float | None,
        typer.Option(help="With --poisson: levels of the file per photon.", show_default=False),
    ] = None,
    read_noise: Annotated[
        float, typer.Option(min=0, help="With --gain: standard deviation of the noise in the dark.")
    ] = 0,
    effort: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=2,
            help="Quality against time: 0 codes patches one by one, 1 similar ones together, 2 (for "
            "pictures) learns longer, and combines similar ones in rounds.",
            show_default="1 for pictures, 0 for films",
        ),
    ] = None,
    model: ModelFile = None,
    atoms: Atoms = None,
    patch: Patch = None,
    range_: Range = None,
    compare: Compare = None,
    report: ReportFile = None,
    jobs: Jobs = 1,
    threads: Threads = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Remove noise from pictures, or from a film.

    The result has the bits, the alpha channel, the color profile, the EXIF and the resolution of the
    picture; what its format cannot keep is said. A folder is gone on with after Ctrl-C by the same
    command, and pictures that cannot be read do not stop it.

    For example:

      smalto denoise noisy.png -o clean.png --compare before-after.png

      smalto denoise photos/ -o clean/ --report clean.html

      smalto denoise film.mp4 -o clean.mp4 --effort 1
    """
    if sum([sigma is not None, sigma_map is not None, poisson]) > 1:
        fail("give only one of --sigma, --sigma-map and --poisson")
    if (gain is not None and not poisson) or (read_noise and gain is None):
        fail("--gain belongs to --poisson, and --read-noise to --gain")
    if gain is not None and not gain > 0:
        fail(f"--gain must be > 0, got {gain:g}")
    if any(is_film(picture) for picture in pictures):
        only_pictures = {
            "--sigma-map": sigma_map, "--poisson": poisson, "--model": model, "--compare": compare,
            "--report": report, "--sure": sure, "--jobs": jobs > 1, "--effort 2": effort == 2,
            "--range": range_,
        }  # fmt: skip
        check_film_options(pictures, only_pictures)
        sizes = {"n_atoms": atoms, "patch_size": patch}
        given = {name: value for name, value in sizes.items() if value is not None}

        def restore_frames(frames: Iterator[Array]) -> Iterator[Array]:
            from smalto.image import denoise_video

            return denoise_video(
                frames, channel_axis=2, sigma=sigma, effort=effort or 0, n_threads=threads,
                random_state=seed, **given,
            )  # fmt: skip

        restore_film(pictures[0], out, force, "denoising", restore_frames)
        return
    plan = plan_of(pictures, out, compare, report, force, range_)

    def restore(picture: PictureFile, settings: Settings) -> Restored:
        from smalto import image
        from smalto.image.stages import noise_told

        check_values(picture, settings.source, "replace them, or fill them in by smalto inpaint")
        level: float | Array | PoissonNoise | None
        if sigma_map is not None:
            level, about = _map(sigma_map, picture), f"noise by {sigma_map}"
        elif poisson:
            level = _camera_noise(picture, gain, read_noise, settings)
            about = f"{level.gain:.3g} levels per photon, read noise {level.read_noise:.3g}"
        else:
            if sigma is not None and not sure:
                _question(sigma, picture, settings)
            level, about = sigma, "" if sigma is None else f"noise {sigma:.3g}"

        def hear_noise(estimate: float) -> None:
            nonlocal about
            about = f"noise {estimate:.3g}"
            low, high = picture.range
            share = f", {20 * math.log10((high - low) / estimate):.1f} dB" if estimate > 0 else ""
            settings.say(f"noise: standard deviation {estimate:.3g} of {high - low:.6g}{share}")

        with naming_options(), noise_told(hear_noise):
            pixels = image.denoise(
                picture.pixels,
                level,
                channel_axis=picture.channel_axis,
                effort=1 if effort is None else effort,
                callbacks=(settings.watch,),
                n_threads=settings.n_threads,
                random_state=seed,
                **dictionary_settings(model, atoms, patch, picture.pixels.ndim == 3, True),
            )
        return Restored(pixels, picture.alpha, about)

    restore_all(plan, restore, "denoising", jobs, threads)


def _map(path: Path, picture: PictureFile) -> Array:
    """Read a map of the noise, for the pixels as they are stored."""
    from smalto.image.files.picture_file import turned_back

    levels = open_picture(path).upright().pixels
    shown = picture.upright().pixels.shape
    if levels.shape[:2] != shown[:2] or (levels.ndim == 3 and levels.shape != shown):
        message = (
            f"{path} is {levels.shape[1]} x {levels.shape[0]}, the picture {shown[1]} x {shown[0]}: "
            "they must have the same size"
        )
        raise ValueError(message)
    return turned_back(levels, picture.metadata.orientation)


def _camera_noise(
    picture: PictureFile, gain: float | None, read_noise: float, settings: Settings
) -> PoissonNoise:
    """Return the noise of a camera, given or estimated."""
    from smalto import image

    if gain is not None:
        return image.PoissonNoise(gain, read_noise)
    try:
        found = image.estimate_poisson_noise(picture.pixels, channel_axis=picture.channel_axis)
    except ValueError as error:
        message = (
            f"{settings.source}: the noise cannot be estimated: leave --poisson out, or give --gain"
        )
        raise ValueError(message) from error
    settings.say(
        f"noise: {found.gain:.3g} levels per photon, read noise {found.read_noise:.3g} levels"
    )
    return found


def _question(sigma: float, picture: PictureFile, settings: Settings) -> None:
    """Refuse a standard deviation that is far from the estimate; say so if it is much lower."""
    from smalto import image
    from smalto.image.noise import is_far

    low, high = picture.range
    if high > low and sigma > high - low:
        message = (
            f"--sigma {sigma:g} is more than all levels of {settings.source} ({low:.6g} to "
            f"{high:.6g}): leave --sigma out, or add --sure"
        )
        raise ValueError(message)
    if sigma == 0:
        settings.say("--sigma 0 means that there is no noise: the picture stays as it is")
        return
    try:
        found = image.estimate_noise(picture.pixels, channel_axis=picture.channel_axis)
    except ValueError:  # too small to tell
        return
    if is_far(sigma, found):
        message = (
            f"--sigma {sigma:g} is far from the noise in {settings.source}, about {found:.3g} in "
            f"levels of the file ({low:.6g} to {high:.6g}): leave --sigma out, or add --sure"
        )
        raise ValueError(message)
    if sigma < found / _LOW:
        settings.say(
            f"--sigma {sigma:g} is far below the noise, about {found:.3g} in levels of the file: "
            "most of it will stay"
        )
