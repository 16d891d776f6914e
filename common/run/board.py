"""What TensorBoard shows of a run: the names of its curves, their charts, and the writer."""

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from tensorboard.summary.writer import event_file_writer
from torch.utils.tensorboard import SummaryWriter

TAGS = {
    "d_loss": "loss/discriminator",
    "g_loss": "loss/generator",
    "d_real": "probability/real",
    "d_fake": "probability/fake",
}


def tag_of(name: str) -> str:
    """Return the TensorBoard tag of a result: from TAGS, `loss/cycle` for `cycle_loss`, else the name itself."""
    return TAGS.get(name) or (f"loss/{name.removesuffix('_loss')}" if name.endswith("_loss") else name)


def charts(tags: Iterable[str]) -> dict[str, dict[str, list]]:
    """Return the layout of TensorBoard's custom scalars: one chart for all tags that differ only after the last `/`."""
    groups = dict.fromkeys(tag.rpartition("/")[0] for tag in tags if "/" in tag)
    return {"training": {group: ["Multiline", [f"^{re.escape(group)}/[^/]+$"]] for group in groups}}


@contextmanager
def events(folder: Path, purge_step: int | None = None) -> Iterator[SummaryWriter]:
    """Open TensorBoard's writer for `folder`; if its thread cannot write, its next call raises the OSError."""
    # TensorBoard reads the files in the order of their names, which begin with the second in which they were made. The
    # new one must come last, also if the clock has been set back.
    names = [re.match(r"events\.out\.tfevents\.(\d+)\.", path.name) for path in folder.iterdir()]
    now = max(time.time(), *(int(name[1]) + 1 for name in names if name), 0)
    with patch.object(event_file_writer, "time", SimpleNamespace(time=lambda: now)):
        board = SummaryWriter(folder, purge_step=purge_step)
    try:
        yield board
    finally:
        with suppress(OSError):  # the run flushes the writer before each checkpoint
            board.close()
