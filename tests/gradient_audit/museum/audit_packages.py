"""The audit on published packages, which train as their own pages say.

`python tests/gradient_audit/museum/audit_packages.py` runs the scripts of `museum/packages`, or those that are named,
and writes docs/packages.md, which says how the packages are installed; nothing is installed here. A script says which
package and version it is for, and, as the others of the museum, what is expected: `# expects: error mixed at
"loss.backward()"`, where the line may be of the package. A line `# bug:` says what is wrong in the package, `# trains:`
how many networks the table must show as used.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "packages.md"
SCRIPTS = Path(__file__).with_name("packages")
ROW = re.compile(r"^\| \[(\w+)\].*$", re.MULTILINE)
FINDING = re.compile(r"^- \*\*(\S+)\*\* \((\w+)\):.*(?:\n(?:  .*)?)*", re.MULTILINE)
EXPECTED = re.compile(r'^# expects: (\w+) (\S+) at "(.+)"$', re.MULTILINE)


def header(text, name):
    """What the line `# name:` of a script says, or nothing."""
    return "".join(re.findall(f"^# {name}: (.+)$", text, re.MULTILINE))


def audited(script, python):
    """Audit a script in an empty folder."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TQDM_DISABLE": "1"}
    command = [python, ROOT / "tests" / "run_audit.py", script]
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=300)


def code_of(place, script, libraries):
    """The code of a place, `file.py:12`, in the script or in any library that has such a file."""
    file, number = place.split(":")
    for path in [script] if script.name == file else libraries.rglob(file):
        if len(lines := path.read_text(errors="replace").splitlines()) >= int(number):
            yield lines[int(number) - 1].strip()


def differences(script, report, libraries):
    """What was expected and is not in the report, and what is and was not, each with its severity."""
    text, seen = script.read_text(), []
    for found in FINDING.finditer(report):
        places = re.findall(r"\w+\.py:\d+", found[0])
        seen.append((found[2], found[1], {code: at for at in places for code in code_of(at, script, libraries)}))
    for severity, kind, code in EXPECTED.findall(text):
        alike = [one for one in seen if one[:2] == (severity, kind)]
        told = [one for one in alike if any(code in line for line in one[2])]
        for one in (told or alike)[:1]:
            seen.remove(one)
        if not told:
            yield severity, f"`{kind}` does not name `{code}`" if alike else f"no `{kind}` at `{code}`"
    for severity, kind, lines in seen:
        yield severity, f"also `{kind}` at {', '.join(sorted({*lines.values()}))}"
    if header(text, "trains") and (count := len(trained(report))) < int(header(text, "trains")):
        yield "error", f"{count} networks are `used` in the table"


def trained(report):
    """The columns of the table in which a network is used."""
    rows = re.findall(r"^\| `.+\|$", report, re.MULTILINE)
    return {column for row in rows for column, cell in enumerate(row.split("|")) if cell.strip().startswith("used")}


def row(script, done, libraries):
    """The row of the table for a script."""
    text = script.read_text()
    package, version = header(text, "package").split("==")
    answer = re.search(
        r"^(?:Wrong|Nothing wrong|No |Not |In doubt|The script raised)[^:\n]*", done.stdout, re.MULTILINE
    )
    differ = [*differences(script, done.stdout, libraries)]
    right = "; ".join(dict.fromkeys(words for severity, words in differ if severity != "waste")) or "yes"
    waste = "; ".join(dict.fromkeys(words for severity, words in differ if severity == "waste")) or "as expected"
    docstring = text.split('"""')[1].split("\n\n")[0]
    name = f"[{script.stem}](../tests/gradient_audit/museum/packages/{script.name})"
    verdict = answer[0].strip(".") if answer else f"none: {done.stderr[-100:]}"
    cells = name, f"{package} {version}", docstring, verdict, right, waste
    return f"| {' | '.join(' '.join(cell.replace('|', '/').split()) for cell in cells)} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of scripts, without .py (default: all)")
    parser.add_argument(
        "--python", default=sys.executable, help="that of the environment with the packages (default: this one)"
    )
    parser.add_argument("--reports", type=Path, help="leave the reports in this folder")
    options = parser.parse_args()
    python = options.python
    ask = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    libraries = Path(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip())
    rows = {found[1]: found[0] for found in ROW.finditer(PAGE.read_text())}
    for script in sorted(SCRIPTS.glob("*.py")):
        if script.stem in (options.names or [script.stem]):
            done = audited(script, python)
            rows[script.stem] = row(script, done, libraries)
            print(rows[script.stem], flush=True)
            if options.reports:
                (options.reports / f"{script.stem}.txt").write_text(done.stdout + done.stderr)
    page = PAGE.read_text()
    start = page.index("| --- |")
    start = page.index("\n", start) + 1
    PAGE.write_text(page[:start] + "".join(f"{rows[name]}\n" for name in sorted(rows)))
