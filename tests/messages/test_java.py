"""Java classes of the message types: javac takes them, and they read and write the bytes that ours do."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from dimos_streams.errors import UserError
from dimos_streams.messages.codec import encode, type_named
from dimos_streams.messages.generation.java import java_classes, lcm_jar, write_java
from dimos_streams.messages.index import TYPE_NAMES
from dimos_streams.messages.std_msgs import String
from tests.messages.own_types import Package

pytestmark = [pytest.mark.feature("F7", "K2"), pytest.mark.usefixtures("lcm_library")]

_SHADOWING = {
    f"own_msgs/{name}.lcm": f"package own_msgs;\n// {name}, 1 µs\nstruct {name} {{ string a; std_msgs.String b; }}"
    for name in ("ArrayList", "Class", "DataInput", "IOException", "String")
}
_QUICK = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-proc:none")
_ROUND_TRIP = """
import java.io.*;

class RoundTrip {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            byte[] data = new byte[words[1].length() / 2];
            for (int at = 0; at < data.length; at++)
                data[at] = (byte) Integer.parseInt(words[1].substring(2 * at, 2 * at + 2), 16);
            Object message = Class.forName(words[0]).getConstructor(byte[].class).newInstance(data);
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            ((lcm.lcm.LCMEncodable) message).encode(new DataOutputStream(bytes));
            StringBuilder text = new StringBuilder(words[0] + " ");
            for (byte each : bytes.toByteArray())
                text.append(String.format("%02x", each));
            System.out.println(text);
        }
    }
}
"""


def write(files: dict[Path, str], folder: Path) -> list[str]:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="ascii")
    return [str(folder / path) for path in files]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("javac") is None, reason="no javac here")
def test_java_reads_and_writes_what_we_do(package: Package, tmp_path: Path) -> None:
    package.define(_SHADOWING)
    files = java_classes([package.messages]) | {Path("RoundTrip.java"): _ROUND_TRIP}
    compiler = ["javac", *_QUICK, "-cp", str(lcm_jar()), "-d", str(tmp_path / "classes")]
    done = subprocess.run(
        [*compiler, *write(files, tmp_path / "java")],
        env={"LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")

    messages = [type_named(name)() for name in TYPE_NAMES]
    messages.append(String(data="to whom it may concern"))
    lines = [f"{message.msg_name} {encode(message).hex()}" for message in messages]
    path = f"{lcm_jar()}:{tmp_path / 'classes'}"
    said = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", path, "RoundTrip"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.stderr == ""
    assert said.stdout.splitlines() == lines


@pytest.mark.slow
def test_definitions_that_cannot_be_java_are_named(package: Package) -> None:
    package.define({"p/T.lcm": "package p;\nstruct T {\n  int8_t n;\n  int8_t final;\n}"})
    with pytest.raises(UserError, match=r"p/T\.lcm:4: 'final' can't be a name in Java"):
        java_classes([package.messages])
    package.define({"p/T.lcm": "package p;\nstruct T { q.Foo x; }"})
    with pytest.raises(UserError, match=r"p/T\.lcm:2: there is no type 'q\.Foo'"):
        java_classes([package.messages])
    package.define({"p/T.lcm": "package p;\nstruct T { int8_t n; }"})
    with pytest.raises(UserError, match=r"p\.T is defined by .*T\.lcm as well"):
        java_classes([package.messages, package.messages])


def test_no_class_is_written_through_a_link_out_of_the_folder(tmp_path: Path) -> None:
    out, outside = tmp_path / "spy", tmp_path / "outside"
    (out / "weather_msgs").mkdir(parents=True)
    (out / "weather_msgs" / "Wind.java").symlink_to(outside)
    classes = {Path("weather_msgs/Rain.java"): "", Path("weather_msgs/Wind.java"): ""}
    with pytest.raises(UserError, match=r"Wind\.java' is not written: a link leads to '.*outside'"):
        write_java(classes, out)
    assert not outside.exists()
    (out / "weather_msgs" / "Wind.java").unlink()
    write_java(classes, out)
    assert sorted(path.name for path in (out / "weather_msgs").iterdir()) == ["Rain.java", "Wind.java"]
