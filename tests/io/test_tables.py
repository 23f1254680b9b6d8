import gzip
import io
import sys
import types

import numpy as np
import pandas as pd
import pytest

from eqlearn.errors import EqlearnError, InvalidArgument, InvalidFile, NotFinite, UnknownName
from eqlearn.io import source, tables
from eqlearn.io.tables import read_blocks, read_measurements

A = np.array([1.0, 2.0, 3.0, 4.5, 6.0, 7.25])
FRAME = pd.DataFrame({"a": A, "b": A**2 - 1, "y": np.sin(A)})


@pytest.fixture
def write(tmp_path):
    def write(content, name="data.csv"):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8")
        return path

    return write


def save(path, kind):
    if kind == "npy":
        np.save(path, FRAME.to_numpy())
    elif kind == "npz":
        np.savez(path, X=FRAME[["a", "b"]].to_numpy(), y=FRAME["y"].to_numpy())
    elif kind == "parquet":
        FRAME.to_parquet(path)
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(FRAME.to_csv(index=False).encode()))
    else:
        FRAME.to_csv(path, index=False, sep={"csv": ",", "tsv": "\t", "dat": " "}[kind])


@pytest.mark.parametrize("kind", ["csv", "tsv", "dat", "csv.gz", "parquet", "npy", "npz"])
def test_every_format_gives_the_same_numbers(tmp_path, kind):
    path = tmp_path / f"data.{kind}"
    save(path, kind)

    read = read_measurements(path, ["x3" if kind == "npy" else "y"])

    np.testing.assert_array_equal(read.X, FRAME[["a", "b"]].to_numpy())
    np.testing.assert_array_equal(read.y, FRAME[["y"]].to_numpy())


def test_names_come_from_the_header(write):
    read = read_measurements(write(FRAME.to_csv(index=False)), ["b"])

    assert (read.inputs, read.targets) == (("a", "y"), ("b",))


def test_standard_input_is_a_table_too(monkeypatch):
    stream = io.BytesIO(FRAME.to_csv(index=False).encode())
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=stream))

    read = read_measurements("-", ["y"])

    np.testing.assert_array_equal(read.X[:, 0], A)
    assert read.name == "the standard input"


def test_semicolons_with_decimal_commas_are_understood(write):
    text = FRAME.to_csv(index=False, sep=";", decimal=",")

    np.testing.assert_array_equal(read_measurements(write(text), ["y"]).X, FRAME[["a", "b"]].to_numpy())


def test_a_byte_order_mark_is_no_part_of_a_name(write):
    path = write(b"\xef\xbb\xbf" + FRAME.to_csv(index=False).encode())

    assert read_measurements(path, ["y"]).inputs == ("a", "b")


@pytest.mark.parametrize(("name", "between"), [("data.csv", ","), ("data.txt", " ")])
def test_names_may_stand_behind_a_hash_as_numpy_writes_them(tmp_path, name, between):
    path = tmp_path / name
    np.savetxt(path, FRAME.to_numpy(), delimiter=between, header=between.join(FRAME.columns))

    read = read_measurements(path, ["y"])

    assert read.inputs == ("a", "b")
    np.testing.assert_array_equal(read.X[:, 0], A)


def test_awkward_names_survive(write):
    names = ["length (m)", "λ, in nm", r"$\alpha$", "lambda"]
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(6, 4)), columns=names)

    assert read_measurements(write(frame.to_csv(index=False)), ["lambda"]).inputs == tuple(names[:3])


def test_a_name_on_two_lines_is_one_name(write):
    path = write('"length\n(mm)",y\n' + "".join(f"{i},{i * i + 1}\n" for i in range(6)))

    assert read_measurements(path, ["y"]).inputs == ("length (mm)",)


def test_inputs_and_ignored_columns_choose_the_same_table(write):
    path = write(FRAME.to_csv(index=False))

    named = read_measurements(path, ["y"], inputs=["a"])
    left = read_measurements(path, ["y"], ignore=["b"])

    assert named.inputs == left.inputs == ("a",)
    assert named.fingerprint == left.fingerprint


def test_text_in_a_column_that_is_not_used_does_no_harm(write):
    path = write("name,a,y\n" + "".join(f"planet {i},{i},{i * i + 1}\n" for i in range(6)))

    assert read_measurements(path, ["y"], ignore=["name"]).X.shape == (6, 1)


def test_a_first_column_without_a_name_holds_row_labels(write):
    assert read_measurements(write(FRAME.to_csv(index=True)), ["y"]).inputs == ("a", "b")


def test_fewer_rows_are_enough_where_nothing_is_fitted(write):
    assert len(read_measurements(write("a,y\n1,1\n"), ["y"], fewest_rows=1).X) == 1


def test_several_targets_stand_side_by_side(write):
    assert read_measurements(write(FRAME.to_csv(index=False)), ["b", "y"]).y.shape == (6, 2)


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        ("", InvalidFile, ["is empty"]),
        ("\n\n", InvalidFile, ["no column names"]),
        ("a,y\n", InvalidArgument, ["0 rows", "at least 5"]),
        ("a,y\n1,2\n3,4\n", InvalidArgument, ["2 rows", "at least 5"]),
        ("a,,y\n1,2,3\n", InvalidFile, ["no name for column 2"]),
        ("a,a,y\n1,2,3\n", InvalidFile, ["several columns named 'a'", "rename"]),
        ("# made by hand\n1,2\n3,4\n", InvalidFile, ["first line", "is a comment", "remove it"]),
        ("a\x1b[2J,y\n1,2\n", InvalidFile, ["control character", "rename it"]),
        ("\u202ea,y\n1,2\n", InvalidFile, ["control character"]),
        ("1,2\n3,4\n5,6\n", InvalidFile, ["first line", "must name the columns"]),
        ("a,y\n" + "1,2\n" * 5 + "oops,3\n", InvalidFile, ["line 7", "'a'", "'oops'", "leave the column"]),
        ("a,y\n\n" + "1,2\n" * 5 + "\n3,1_000\n", InvalidFile, ["line 9", "'y'", "'1_000'"]),
        ('a,"y\nz",t\n' + "1,2,3\n" * 5 + "3,4,x\n", UnknownName, ["no column 'y'"]),
        (
            "a,y\n1,2\n,3\n4,inf\n5,6\n7,8\n",
            NotFinite,
            ["2 missing", "2 rows", "'a': 1, 'y': 1", "`drop_missing`"],
        ),
        ("a,y\n1,2,3\n4,5,6\n", InvalidFile, ["line 2", "3 fields for 2"]),
        ("a,y\n1,2\n\n4,5,6\n", InvalidFile, ["line 4", "3 fields for 2"]),
        ('a,y\n1,"2\n', InvalidFile, ["not a regular table"]),
        ("a,y\n" + "1,1\n2,2\n" * 3, InvalidArgument, ["'a' equals the target 'y'", "`ignore`"]),
        ("y\n" + "1\n" * 6, InvalidArgument, ["no column left"]),
        (b"a,y\n1,2\nk\xe9k,3\n", InvalidFile, ["not UTF-8", "0xe9", "iconv"]),
        ("a,y\n1,2\n".encode("utf-16"), InvalidFile, ["UTF-16", "iconv"]),
        (b"\x89PNG\0\0\0\1", InvalidFile, ["not a table"]),
        (b"PAR1 and nothing more", InvalidFile, ["Parquet"]),
        (b"PK\3\4 and nothing more", InvalidFile, ["not a whole .npz"]),
        (b"\x93NUMPY and nothing more", InvalidFile, ["plain numbers"]),
        (b"\x1f\x8b and nothing more", InvalidFile, ["can't be read"]),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(write, content, error, words):
    with pytest.raises(error) as refusal:
        read_measurements(write(content), ["y"])

    message = str(refusal.value)
    assert "\n" not in message
    assert [word for word in words if word not in message] == []


def test_a_missing_file_suggests_its_neighbour(write):
    path = write("a,y\n")

    with pytest.raises(InvalidArgument, match=r"no file .*dta\.csv'; did you mean 'data\.csv'"):
        read_measurements(path.with_name("dta.csv"), ["y"])


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(InvalidArgument, match="is a folder"):
        read_measurements(tmp_path, ["y"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": ["yy"]}, "no column 'yy'; did you mean 'y'?"),
        ({"target": ["Y"]}, "no column 'Y'; did you mean 'y'?"),
        ({"target": []}, "name the column to explain"),
        ({"target": ["y"], "inputs": ["a", "y"]}, "is the target"),
        ({"target": ["y"], "inputs": ["a", "a"]}, "twice"),
        ({"target": ["y", "y"]}, "twice"),
        ({"target": ["y"], "ignore": ["y"]}, "both wanted and in `ignore`"),
        ({"target": ["y"], "ignore": ["c"]}, "no column 'c'"),
    ],
)
def test_a_wrong_choice_of_columns_is_named(write, options, words):
    with pytest.raises(EqlearnError) as refusal:
        read_measurements(write(FRAME.to_csv(index=False)), **options)

    assert words in str(refusal.value)


def test_a_spreadsheet_is_told_what_to_do(tmp_path):
    import zipfile

    path = tmp_path / "data.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")

    with pytest.raises(InvalidFile, match="spreadsheet; save the sheet as CSV"):
        read_measurements(path, ["y"])


def test_pickled_arrays_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}, 1], dtype=object), allow_pickle=True)

    with pytest.raises(InvalidFile, match="plain numbers"):
        read_measurements(tmp_path / "a.npy", ["x"])


def test_text_in_parquet_is_named(tmp_path):
    pd.DataFrame({"a": ["u"] * 6, "y": A}).to_parquet(tmp_path / "a.parquet")

    with pytest.raises(InvalidFile, match=r"column 'a' .* numbers are needed"):
        read_measurements(tmp_path / "a.parquet", ["y"])


def test_missing_values_in_parquet_are_counted(tmp_path):
    frame = pd.DataFrame({"a": pd.array([1, None, 3, 4, 5, 6], dtype="Int64"), "y": A})
    frame.to_parquet(tmp_path / "a.parquet")

    with pytest.raises(NotFinite, match="1 missing"):
        read_measurements(tmp_path / "a.parquet", ["y"])


def test_rows_with_missing_values_can_be_dropped(write):
    path = write("a,y\n1,2\n,3\n4,inf\n5,6\n7,8\n9,1\n2,2\n")

    read = read_measurements(path, ["y"], drop_missing=True)

    assert (len(read.X), read.rows_read, read.rows_dropped) == (5, 7, 2)


def test_arrays_of_different_length_are_no_table(tmp_path):
    np.savez(tmp_path / "a.npz", a=A, y=A[1:])

    with pytest.raises(InvalidFile, match="different numbers of rows"):
        read_measurements(tmp_path / "a.npz", ["y"])


@pytest.mark.parametrize("size", [7, 100, 1000])
def test_the_subsample_does_not_depend_on_how_the_file_is_cut(tmp_path, monkeypatch, size):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(2000.0).reshape(1000, 2))
    whole = read_measurements(path, ["x2"], seed=3, most_rows=50)

    monkeypatch.setattr(source, "CELLS", size)
    cut = read_measurements(path, ["x2"], seed=3, most_rows=50)

    np.testing.assert_array_equal(cut.X, whole.X)
    assert (len(cut.X), cut.rows_read) == (50, 1000)


def test_every_row_is_drawn_about_as_often(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "CELLS", 64)
    np.save(tmp_path / "a.npy", np.stack([np.arange(64.0), -np.arange(64.0) - 1], axis=1))
    counts = np.zeros(64)

    for seed in range(80):
        counts[
            read_measurements(tmp_path / "a.npy", ["x2"], seed=seed, most_rows=16).X[:, 0].astype(int)
        ] += 1

    # 80 draws with chance 1/4: 20 expected, standard deviation 3.9.
    assert counts.min() > 20 - 5 * 3.9
    assert counts.max() < 20 + 5 * 3.9


def test_a_large_file_is_never_in_memory_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "CELLS", 1000)
    monkeypatch.setattr(tables, "MOST_CELLS", 1000)
    path = tmp_path / "a.csv"
    pd.DataFrame(np.random.default_rng(0).normal(size=(20_000, 5)), columns=list("abcdy")).to_csv(
        path, index=False
    )
    seen = []
    original = tables._Reservoir.add
    monkeypatch.setattr(tables._Reservoir, "add", lambda self, b: (seen.append(b.size), original(self, b))[1])

    read = read_measurements(path, ["y"])

    assert max(seen) <= 1000
    assert read.X.size + read.y.size <= 1000
    assert read.rows_read == 20_000


def test_a_bad_value_is_found_even_where_the_sample_would_skip_it(write):
    path = write("a,y\n" + "".join(f"{i},{i * i}\n" for i in range(2000)) + "nan,1\n")

    with pytest.raises(NotFinite, match="1 missing"):
        read_measurements(path, ["y"], most_rows=10)


def test_blocks_leave_missing_values_to_the_caller(write):
    (block,) = read_blocks(write("a,b\n1,\n2,3\n"), ["b", "a"])

    np.testing.assert_array_equal(block, [[np.nan, 1.0], [3.0, 2.0]])


def test_other_values_have_another_fingerprint(write):
    first = read_measurements(write(FRAME.to_csv(index=False)), ["y"])
    other = read_measurements(write((FRAME + 1e-12).to_csv(index=False), "b.csv"), ["y"])

    assert first.fingerprint != other.fingerprint


def test_whole_numbers_of_many_digits_are_numbers(write):
    rows = [f"{10**21 + i},{i}" for i in range(6)]

    read = read_measurements(write("\n".join(["a,y", *rows])), ["y"])

    np.testing.assert_array_equal(read.X[:, 0], [float(10**21 + i) for i in range(6)])


def test_a_quote_that_is_never_closed_is_explained(write):
    path = write('a,"y\n' + "1,2\n" * 40_000)

    with pytest.raises(InvalidFile) as raised:
        read_measurements(path, ["y"])
    assert "\n" not in str(raised.value)
