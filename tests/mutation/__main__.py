"""Do the tests notice mistakes? Tries a sample of mutants of packages and shows those that no test noticed.

The first command finds out which tests run which line, the second tries mutants with those tests.

coverage run --rcfile=tests/mutation/coveragerc -m pytest -p tests.mutation.contexts -n0
coverage combine
python -m tests.mutation dimos_streams/bus skills --size 50 --seed 1
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import multiprocessing
import queue as queue_module
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.mutation.mutants import Mutant, sample
from tests.mutation.trial import Copy, CoveringTests, Verdict, try_out

REPOSITORY = Path(__file__).parents[2]

Result = tuple[Mutant, Verdict, float]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("paths", nargs="+", type=Path, help="folders or modules")
    parser.add_argument("--size", type=int, default=50, help="mutants of each path")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most-tests", type=int, default=40, help="of those that run a line, of each file in turn")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for the tests of one mutant")
    parser.add_argument("--coverage", type=Path, default=REPOSITORY / ".coverage")
    given = parser.parse_args()
    for path in given.paths:
        modules = [path] if path.is_file() else sorted(path.rglob("*.py"))
        modules = [module.resolve() for module in modules if not module.is_symlink()]
        mutants = sample(modules, given.size, given.seed)
        parts = [mutants[start :: given.jobs] for start in range(given.jobs)]
        verdicts: Counter[Verdict] = Counter()
        work = partial(_try_all, data=given.coverage, most_tests=given.most_tests, timeout_s=given.timeout)
        for mutant, verdict, seconds in _in_processes(work, parts):
            verdicts[verdict] += 1
            if verdict is not Verdict.KILLED:
                print(f"\n{verdict} in {seconds:.0f} s: {mutant.operator}\n{_difference(mutant)}", flush=True)
        counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in Verdict)
        print(f"\n{path}: {len(mutants)} mutants, {counts}", flush=True)


def _in_processes(work: partial[None], parts: list[list[Mutant]]) -> Iterator[Result]:
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[Result] = context.Queue()
    processes = [context.Process(target=work, args=(part, queue)) for part in parts]
    for process in processes:
        process.start()
    left = sum(len(part) for part in parts)
    while left:
        with contextlib.suppress(queue_module.Empty):
            yield queue.get(timeout=1.0)
            left -= 1
            continue
        if left and not any(process.is_alive() for process in processes):
            raise RuntimeError(f"{left} mutants were not tried: the processes that try them have failed")
    for process in processes:
        process.join()


def _try_all(
    mutants: list[Mutant],
    queue: multiprocessing.Queue[Result],
    *,
    data: Path,
    most_tests: int,
    timeout_s: float,
) -> None:
    covering = CoveringTests(data)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(REPOSITORY, Path(folder) / "repository", timeout_s)
        for mutant in mutants:
            queue.put((mutant, *try_out(mutant, covering, copy, most_tests)))


def _difference(mutant: Mutant) -> str:
    name = str(mutant.module.relative_to(REPOSITORY))
    before, after = mutant.module.read_text(encoding="utf-8"), mutant.code() or ""
    return "\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, lineterm="", n=2))


if __name__ == "__main__":
    main()
