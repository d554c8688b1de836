"""Everything that README.md and docs/*.md name exists: files, folders, links, types, strategies."""

import re
import unittest
from pathlib import Path

from support import ROOT, Case

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Paths that a page may name: sources and pages, not files that slalom or the build write.
SOURCE = re.compile(r"[A-Za-z_.][\w.<>*{},-]*(/[\w.<>*{},-]+)*/?")
MADE = ("build", "slalom-findings", "<root>")
ENDINGS = (".h", ".cc", ".md", ".toml", ".py")


def prose(page):
    """Returns the page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def named_files(page):
    for code in re.findall(r"`([^`\n]+)`", prose(page)):
        for word in code.split():
            word = word.removeprefix("./").rstrip(",;:")
            if SOURCE.fullmatch(word) and not word.startswith(MADE) and ("/" in word or word.endswith(ENDINGS)):
                yield word


def alternatives(word):
    """Expands a pattern: `a.{h,cc}` is two files; `<name>` and `*` stand for any."""
    match = re.search(r"\{([^}]*)\}", word)
    if match:
        return [one for part in match.group(1).split(",") for one in alternatives(word.replace(match.group(), part, 1))]
    return [re.sub(r"<\w+>", "*", word).rstrip("/")]


def exists(pattern):
    """Paths may start at the root, at src/, or at a folder in between, as in `strategies/dfs.h`."""
    folders = [ROOT, *(path for top in ("src", "tests", "docs") for path in [ROOT / top, *(ROOT / top).rglob("*")] if path.is_dir())]
    return any(True for folder in folders for _ in folder.glob(pattern))


class Docs(Case):
    def test_every_file_and_folder_that_is_named_exists(self):
        count = 0
        for page in PAGES:
            for word in named_files(page):
                for pattern in alternatives(word):
                    count += 1
                    self.assertTrue(exists(pattern), f"{page.name} names {word}, which does not exist")
        self.assertGreater(count, 100)  # otherwise the patterns above no longer match

    def test_every_link_leads_somewhere(self):
        for page in PAGES:
            for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
                path, _, anchor = link.partition("#")
                target = page.parent / path if path else page
                self.assertTrue(target.exists(), f"{page.name} links to {link}")
                if anchor:
                    headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.M)
                    anchors = [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
                    self.assertIn(anchor, anchors, f"{page.name} links to {link}")

    def test_every_page_is_reached_from_the_readme(self):
        seen, todo = set(), [ROOT / "README.md"]
        while todo:
            page = todo.pop().resolve()
            if page in seen or page.suffix != ".md":
                continue
            seen.add(page)
            todo += [page.parent / link for link in re.findall(r"\]\(([^)\s#]+)", page.read_text(encoding="utf-8"))]
        self.assertEqual(set(map(Path.resolve, PAGES)) - seen, set())

    def test_the_glossary_names_what_is_in_the_code(self):
        rows = re.findall(r"\| `(\w+)` in `(\S+)` \|$", (ROOT / "docs/tour.md").read_text(encoding="utf-8"), re.M)
        self.assertGreater(len(rows), 20)
        for name, file in rows:
            self.assertRegex((ROOT / file).read_text(encoding="utf-8"), rf"\b{name}\b", f"{name} in {file}")

    def test_the_walks_name_functions_that_are_in_these_files(self):
        count = 0
        for line in (ROOT / "docs/tour.md").read_text(encoding="utf-8").replace("\n", " ").split("|"):
            for name, file in re.findall(r"`([\w:]+)\(\)`\s+in\s+`([\w./]+\.(?:cc|h))`", line):
                count += 1
                word = name.rsplit("::", 1)[-1]
                texts = [path.read_text(encoding="utf-8") for path in [*ROOT.glob(file), *(ROOT / "src").rglob(file)]]
                self.assertTrue(any(re.search(rf"\b{word}\(", text) for text in texts), f"{name} in {file}")
        self.assertGreater(count, 20)

    def test_the_map_has_every_folder(self):
        tour = (ROOT / "docs/tour.md").read_text(encoding="utf-8")
        mapped = set(re.findall(r"^\| `([\w/]+)/` \|", tour, re.M))
        folders = {f"{top}/{path.name}" for top in ("src", "tests") for path in (ROOT / top).iterdir() if path.is_dir()}
        self.assertEqual(folders - mapped - {"tests/scripts"}, set())

    def test_the_map_has_the_arrows_of_cmake(self):
        cmake = (ROOT / "src/CMakeLists.txt").read_text(encoding="utf-8")
        links = {name: set(rest.split()) for name, rest in re.findall(r"^ *slalom_library\((\w+)(?: LINKS ([a-z_ ]+))?", cmake, re.M)}
        tour = (ROOT / "docs/tour.md").read_text(encoding="utf-8")
        for name, uses in links.items():
            row = re.search(rf"^\| `src/{name}/` \|[^|]*\| ([^|]*) \|$", tour, re.M)
            self.assertIsNotNone(row, name)
            self.assertEqual(set(row.group(1).split(", ")) - {"nothing"}, uses, name)

    def test_the_strategies_that_exist_are_listed(self):
        listed = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/howto-explore.md").read_text(encoding="utf-8"), re.M)
        told = self.expect(0, "explore", "--help").stdout.split("Strategies, ")[1].split("Detectors, ")[0]
        self.assertEqual(listed, re.findall(r"^  (\w+) ", told, re.M))


if __name__ == "__main__":
    unittest.main()
