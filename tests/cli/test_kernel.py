"""slalom kernel: fetches from a local mirror of tiny packages, so that the test needs no network."""

import functools
import hashlib
import http.server
import json
import os
import shutil
import subprocess
import threading
import unittest
from pathlib import Path

from support import Case

CLOUD = "linux-image-cloud-amd64"


def gpg(home, *arguments):
    return subprocess.run(["gpg", "--homedir", home, "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", "",
                           *arguments], check=True, capture_output=True).stdout


class Mirror:
    """A Debian mirror in a directory: suites of packages, unsigned."""

    def __init__(self, directory):
        self.directory = directory
        self.url = f"file://{directory}"
        self.suites = {}
        self.signer = None

    def package(self, suite, name, version, files=(), depends=""):
        tree = self.directory / "tree"
        (tree / "DEBIAN").mkdir(parents=True)
        control = f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: Nobody <nobody@example.org>\n"
        control += f"Depends: {depends}\n" if depends else ""
        (tree / "DEBIAN/control").write_text(control + "Description: a test\n", encoding="utf-8")
        for path, text in dict(files).items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text, encoding="utf-8")
        pool = self.directory / "pool"
        pool.mkdir(exist_ok=True)
        file = pool / f"{name}_{version}_amd64.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, file], check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(tree)
        data = file.read_bytes()
        control += f"Filename: pool/{file.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
        self.suites.setdefault(suite, []).append(control + "Description: a test\n")
        self.write()
        return file

    def sign(self, home, key):
        """Signs the lists with a key of this GnuPG directory."""
        self.signer = (home, key)
        self.write()

    def write(self):
        for suite, packages in self.suites.items():
            lists = self.directory / "dists" / suite / "main/binary-amd64"
            lists.mkdir(parents=True, exist_ok=True)
            text = "\n".join(packages)
            (lists / "Packages").write_text(text, encoding="utf-8")
            digest = hashlib.sha256(text.encode()).hexdigest()
            (lists.parents[1] / "Release").write_text(
                f"Suite: {suite}\nCodename: {suite}\nComponents: main\nArchitectures: amd64\n"
                "Date: Thu, 01 Jan 2015 00:00:00 UTC\nValid-Until: Fri, 02 Jan 2015 00:00:00 UTC\n"
                f"SHA256:\n {digest} {len(text.encode())} main/binary-amd64/Packages\n", encoding="utf-8")
            if self.signer is not None:
                gpg(self.signer[0], "--yes", "--local-user", self.signer[1], "--clearsign", "--output",
                    lists.parents[1] / "InRelease", lists.parents[1] / "Release")

    def kernel(self, suite, release, version, meta=CLOUD):
        """A meta-package and an image with modules, as Debian's releases up to 13 have them."""
        self.package(suite, meta, version, depends=f"linux-image-{release} (= {version})")
        return self.package(suite, f"linux-image-{release}", version, {
            f"boot/vmlinuz-{release}": f"kernel {version}",
            f"boot/config-{release}": "CONFIG_SMP=y\n",
            f"boot/System.map-{release}": "ffffffffffffffff B The real System.map is elsewhere\n",
            f"lib/modules/{release}/kernel/fs/x.ko": "module",
        }, depends="kmod, initramfs-tools (>= 0.120) | linux-initramfs-tool")


@unittest.skipUnless(shutil.which("apt-get") and shutil.which("dpkg-deb"), "needs apt and dpkg")
class KernelCase(Case):
    def setUp(self):
        super().setUp()
        (self.directory / "mirror").mkdir()
        self.mirror = Mirror(self.directory / "mirror")
        self.cache = self.directory / "cache"
        self.kernels = self.cache / "kernels"

    def run_kernel(self, code, *arguments):
        return self.expect(code, "kernel", *arguments, SLALOM_CACHE=str(self.cache))

    def get(self, code, name, *more):
        return self.run_kernel(code, "get", name, "--mirror", self.mirror.url, "--unsigned", *more)

    def note(self, name):
        return (self.kernels / name / "kernel.txt").read_text(encoding="utf-8")


class Get(KernelCase):
    def test_a_meta_package_leads_to_the_image(self):
        image = self.mirror.kernel("bookworm-security", "6.1.0-9-cloud-amd64", "6.1.99-1")
        digest = hashlib.sha256(image.read_bytes()).hexdigest()
        done = self.get(0, "debian:6.1")
        self.assertIn("debian:6.1: Linux 6.1.0-9-cloud-amd64 in ", done.stdout)
        here = self.kernels / "debian:6.1"
        self.assertEqual((here / "vmlinuz").read_text(), "kernel 6.1.99-1")
        self.assertEqual((here / "config").read_text(), "CONFIG_SMP=y\n")
        self.assertEqual((here / "modules/kernel/fs/x.ko").read_text(), "module")
        self.assertFalse((here / "System.map").exists())  # Debian's file only says where the real one is
        self.assertIn(f" linux-image-6.1.0-9-cloud-amd64 6.1.99-1 {digest}\n", self.note("debian:6.1"))
        self.assertEqual(sorted(p.name for p in self.kernels.iterdir()), [".lock", "debian:6.1"])

    def test_the_default_is_6_1(self):
        self.mirror.kernel("bookworm-security", "6.1.0-9-cloud-amd64", "6.1.99-1")
        self.run_kernel(0, "get", "--mirror", self.mirror.url, "--unsigned")
        self.assertTrue((self.kernels / "debian:6.1/vmlinuz").exists())

    def test_the_image_in_parts_beside_its_modules(self):
        release, version = "7.2.1+deb14-cloud-amd64", "7.2.1-1"
        home = f"usr/lib/modules/{release}"
        same = f"(= {version})"
        self.mirror.package("sid", CLOUD, version, depends=f"linux-base-cloud-amd64 {same}, linux-image-{release} {same}")
        self.mirror.package("sid", "linux-base-cloud-amd64", version)
        self.mirror.package("sid", f"linux-image-{release}", version,
                            depends=f"dracut | initramfs-tools (>= 0.1), linux-binary-{release} {same}, linux-modules-{release} {same}")
        self.mirror.package("sid", f"linux-binary-{release}", version, {f"{home}/vmlinuz": "sid kernel"})
        self.mirror.package("sid", f"linux-modules-{release}", version, {f"{home}/kernel/a.ko.xz": "packed"})
        got = json.loads(self.get(0, "debian:sid", "--json").stdout)
        self.assertEqual(got["release"], release)
        self.assertEqual(Path(got["vmlinuz"]).read_text(), "sid kernel")
        self.assertEqual((Path(got["modules"]) / "kernel/a.ko.xz").read_text(), "packed")
        self.assertEqual(len(got["packages"]), 5)

    def test_again_it_needs_no_mirror(self):
        self.mirror.kernel("bookworm-security", "6.1.0-9-cloud-amd64", "6.1.99-1")
        first = self.get(0, "debian:6.1").stdout
        shutil.rmtree(self.mirror.directory)
        self.assertEqual(self.get(0, "debian:6.1").stdout, first)

    def test_suites_are_tried_in_turn(self):
        self.mirror.kernel("bookworm-backports", "6.12.9-cloud-amd64", "6.12.9-1~bpo12+1")
        self.get(0, "debian:6.12")
        self.assertEqual((self.kernels / "debian:6.12/vmlinuz").read_text(), "kernel 6.12.9-1~bpo12+1")

    def test_only_the_version_that_was_asked_for(self):
        self.mirror.kernel("bookworm", "6.3.0-cloud-amd64", "6.3.5-1")
        self.assertIn(f"it has no {CLOUD} 6.1.*", self.get(2, "debian:6.1").stderr)

    def test_what_is_listed_but_gone_is_passed_over_for_an_older_one(self):
        self.mirror.kernel("bullseye-security", "5.10.0-46-cloud-amd64", "5.10.262-1").unlink()
        self.mirror.kernel("bullseye", "5.10.0-32-cloud-amd64", "5.10.223-1")
        self.get(0, "debian:5.10")
        self.assertEqual((self.kernels / "debian:5.10/vmlinuz").read_text(), "kernel 5.10.223-1")

    def test_two_at_once(self):
        self.mirror.kernel("bookworm-security", "6.1.0-9-cloud-amd64", "6.1.99-1")
        arguments = ["kernel", "get", "debian:6.1", "--mirror", self.mirror.url, "--unsigned"]
        os.environ["SLALOM_CACHE"] = str(self.cache)
        self.addCleanup(os.environ.pop, "SLALOM_CACHE")
        both = [self.start(*arguments) for _ in range(2)]
        for process in both:
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, out + err)

    def test_leftovers_of_an_interrupted_one_go(self):
        self.mirror.kernel("bookworm-security", "6.1.0-9-cloud-amd64", "6.1.99-1")
        (self.kernels / ".fetch-1/apt").mkdir(parents=True)
        (self.kernels / "debian:6.1").mkdir()  # without its note it does not count as a kernel
        self.get(0, "debian:6.1")
        self.assertEqual(sorted(p.name for p in self.kernels.iterdir()), [".lock", "debian:6.1"])

    def test_the_systems_apt_is_left_alone(self):
        def state():
            places = [Path("/etc/apt"), Path("/var/lib/apt/lists"), Path("/var/cache/apt")]
            return [(str(p), p.lstat().st_mtime_ns) for place in places if place.exists() for p in [place, *place.rglob("*")]]
        self.mirror.kernel("bookworm-security", "6.1.0-9-cloud-amd64", "6.1.99-1")
        before = state()
        self.get(0, "debian:6.1")
        self.assertEqual(state(), before)


class BuildsAndFlavours(KernelCase):
    def setUp(self):
        super().setUp()
        self.mirror.kernel("bookworm", "6.1.0-8-cloud-amd64", "6.1.98-1")
        self.mirror.kernel("bookworm-security", "6.1.0-8-cloud-amd64", "6.1.98-1")
        self.mirror.kernel("bookworm-security", "6.1.0-9-cloud-amd64", "6.1.99-1")
        self.mirror.kernel("bookworm-security", "6.1.0-10-cloud-amd64", "6.1.100-1")
        self.mirror.kernel("bookworm-security", "6.1.0-10-rt-amd64", "6.1.100-1", "linux-image-rt-amd64")
        self.mirror.kernel("bookworm-security", "6.1.0-10-amd64", "6.1.100-1", "linux-image-amd64")
        self.mirror.package("bookworm-security", "linux-image-6.1.0-10-cloud-amd64-dbg", "6.1.101-1")

    def image(self, name):
        return (self.kernels / name / "vmlinuz").read_text()

    def test_one_build_by_name(self):
        done = self.get(0, "debian:6.1=6.1.99-1")
        self.assertIn("debian:6.1=6.1.99-1: Linux 6.1.0-9-cloud-amd64 in ", done.stdout)
        self.assertEqual(self.image("debian:6.1=6.1.99-1"), "kernel 6.1.99-1")
        self.get(0, "debian:6.1")
        self.assertEqual(self.image("debian:6.1"), "kernel 6.1.100-1")
        shutil.rmtree(self.mirror.directory)
        self.get(0, "debian:6.1=6.1.100-1")  # the newest one, which is here under the shorter name
        shown = self.run_kernel(0, "list").stdout
        self.assertIn("debian:6.1           Linux 6.1.0-10-cloud-amd64 (6.1.100-1)\n"
                      "debian:6.1=6.1.99-1  Linux 6.1.0-9-cloud-amd64 (6.1.99-1)\n", shown)
        self.run_kernel(0, "remove", "debian:6.1=6.1.99-1")
        self.assertTrue((self.kernels / "debian:6.1").exists())
        self.assertFalse((self.kernels / "debian:6.1=6.1.99-1").exists())

    def test_flavours(self):
        for name, release in (("debian:6.1:rt", "6.1.0-10-rt-amd64"), ("debian:6.1:amd64", "6.1.0-10-amd64"),
                              ("debian:6.1:rt=6.1.100-1", "6.1.0-10-rt-amd64"), ("debian:6.1:cloud", "6.1.0-10-cloud-amd64")):
            self.assertEqual(json.loads(self.get(0, name, "--json").stdout)["release"], release, name)
        self.assertEqual(sorted(p.name for p in self.kernels.iterdir()), [".lock", "debian:6.1", "debian:6.1:amd64", "debian:6.1:rt"])
        self.assertIn('Debian has no flavour "arm64"', self.get(2, "debian:6.1:arm64").stderr)

    def test_a_build_that_is_gone_names_those_that_there_are(self):
        done = self.get(2, "debian:6.1=6.1.97-1")
        self.assertIn("it has 6.1.100-1, 6.1.99-1, 6.1.98-1\n", done.stderr)
        self.assertIn("slalom kernel list debian:6.1 --available", done.stderr)
        self.assertIn('"6.12.1-1" is no build of debian:6.1', self.get(2, "debian:6.1=6.12.1-1").stderr)

    def test_available(self):
        self.get(0, "debian:6.1=6.1.99-1")
        options = ["--available", "--mirror", self.mirror.url, "--unsigned"]
        done = self.run_kernel(0, "list", "debian:6.1", *options)
        self.assertEqual(done.stdout, "debian:6.1=6.1.100-1  Linux 6.1.0-10-cloud-amd64, bookworm-security\n"
                                      "debian:6.1=6.1.99-1   Linux 6.1.0-9-cloud-amd64, bookworm-security, here\n"
                                      "debian:6.1=6.1.98-1   Linux 6.1.0-8-cloud-amd64, bookworm-security\n")
        self.assertIn(f"bullseye-security at {self.mirror.url}: ", done.stderr)
        [rt] = json.loads(self.run_kernel(0, "list", "debian:6.1:rt", *options, "--json").stdout)
        self.assertEqual((rt["name"], rt["release"], rt["fetched"]), ("debian:6.1:rt=6.1.100-1", "6.1.0-10-rt-amd64", False))
        every = self.run_kernel(0, "list", *options)
        self.assertEqual(every.stdout, done.stdout + "debian:6.12: the mirrors have none\n")
        self.assertIn("debian:sid: the mirrors' lists cannot be read", every.stderr)
        self.assertIn("lists cannot be read", self.run_kernel(2, "list", "debian:sid", *options).stderr)
        self.assertIn("write debian:6.1", self.run_kernel(2, "list", "debian:6.1=6.1.99-1", *options).stderr)


@unittest.skipUnless(shutil.which("gpg"), "needs gpg")
class Signatures(KernelCase):
    def setUp(self):
        super().setUp()
        self.home = self.directory / "gnupg"
        self.home.mkdir(mode=0o700)
        self.addCleanup(subprocess.run, ["gpgconf", "--homedir", self.home, "--kill", "all"], capture_output=True, check=False)
        self.image = self.mirror.kernel("bookworm-security", "6.1.0-9-cloud-amd64", "6.1.99-1")
        self.mirror.sign(self.home, self.key("mirror"))

    def key(self, name):
        address = f"{name}@example.org"
        gpg(self.home, "--quick-generate-key", address, "ed25519", "sign", "never")
        (self.directory / f"{name}.gpg").write_bytes(gpg(self.home, "--export", address))
        return address

    def signed(self, code, *more):
        return self.run_kernel(code, "get", "debian:6.1", "--mirror", self.mirror.url, *more)

    def test_a_mirror_signed_with_a_key_of_the_keyring(self):
        self.signed(0, "--keyring", "mirror.gpg")
        self.assertTrue((self.kernels / "debian:6.1/vmlinuz").exists())

    def test_keys_that_are_not_debians_need_a_keyring(self):
        self.assertRegex(self.signed(2).stderr, "not signed|NO_PUBKEY|public key is not available|Missing key")

    def test_another_key_will_not_do(self):
        self.key("other")
        self.assertRegex(self.signed(2, "--keyring", "other.gpg").stderr, "not signed|NO_PUBKEY|public key is not available|Missing key")

    def test_a_list_that_was_changed_is_refused(self):
        packages = self.mirror.directory / "dists/bookworm-security/main/binary-amd64/Packages"
        packages.write_text(packages.read_text().replace("6.1.99-1", "6.1.98-1"))
        self.assertIn("debian:6.1 cannot be fetched", self.signed(2, "--keyring", "mirror.gpg").stderr)

    def test_a_package_that_was_changed_is_refused(self):
        data = bytearray(self.image.read_bytes())
        data[-10] ^= 1
        self.image.write_bytes(data)
        self.assertIn("debian:6.1 cannot be fetched", self.signed(2, "--keyring", "mirror.gpg").stderr)

    def test_wrong_usage(self):
        self.assertIn("there is no keyring none.gpg", self.signed(2, "--keyring", "none.gpg").stderr)
        self.assertIn("leave out one", self.signed(2, "--keyring", "mirror.gpg", "--unsigned").stderr)
        self.assertIn("with --mirror URL", self.run_kernel(2, "get", "debian:6.1", "--keyring", "mirror.gpg").stderr)


class BreaksOff(http.server.SimpleHTTPRequestHandler):
    """A server that ends the connection in the middle of a package."""

    def do_GET(self):  # noqa: N802, the name is the library's
        path = Path(self.translate_path(self.path))
        if path.suffix != ".deb":
            return super().do_GET()
        data = path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[:len(data) // 2])
        self.close_connection = True
        return None

    def log_message(self, *_):
        pass


class Network(KernelCase):
    def test_a_download_that_breaks_off(self):
        self.mirror.kernel("bookworm-security", "6.1.0-9-cloud-amd64", "6.1.99-1")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(BreaksOff, directory=self.mirror.directory))
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        url = f"http://127.0.0.1:{server.server_port}"
        done = self.run_kernel(2, "get", "debian:6.1", "--mirror", url, "--unsigned")
        self.assertIn(f"bookworm-security at {url}: the download of linux-image-cloud-amd64 6.1.99-1 broke off", done.stderr)
        self.assertEqual([p.name for p in self.kernels.iterdir()], [".lock"])


class Headers(KernelCase):
    RELEASE, VERSION = "6.1.0-9-cloud-amd64", "6.1.99-1"

    def setUp(self):
        super().setUp()
        self.mirror.kernel("bookworm-security", self.RELEASE, self.VERSION)
        self.home = self.cache / "headers" / self.RELEASE / "usr"

    def headers(self, version, kbuild):
        same = f"(= {version})"
        self.mirror.package("bookworm-security", f"linux-headers-{self.RELEASE}", version, {
            f"usr/src/linux-headers-{self.RELEASE}/Makefile": "include /usr/src/linux-headers-6.1.0-9-common/Makefile\n",
        }, depends=f"linux-headers-6.1.0-9-common {same}, linux-image-{self.RELEASE} {same} | unsigned {same}, "
                   f"linux-kbuild-6.1 (>= {version}), linux-compiler-gcc-12-x86")
        self.mirror.package("bookworm-security", "linux-headers-6.1.0-9-common", version, {
            "usr/src/linux-headers-6.1.0-9-common/Makefile": "all:\n\t@echo the common one\n"})
        self.mirror.package("bookworm-security", "linux-kbuild-6.1", kbuild, {"usr/lib/linux-kbuild-6.1/tool": kbuild})

    def test_of_that_build_with_its_tools_ready_for_make(self):
        self.headers(self.VERSION, self.VERSION)
        self.get(0, "debian:6.1")
        self.assertFalse((self.cache / "headers").exists())
        done = self.get(0, "debian:6.1", "--headers")
        here = self.home / f"src/linux-headers-{self.RELEASE}"
        self.assertIn(f"its headers: {here}\n", done.stdout)
        made = subprocess.run(["make", "-s", "-C", here], capture_output=True, text=True, check=False)
        self.assertEqual((made.returncode, made.stdout), (0, "the common one\n"), made.stderr)
        self.assertEqual((self.home / "lib/linux-kbuild-6.1/tool").read_text(), self.VERSION)
        self.assertEqual(sorted(p.name for p in self.kernels.iterdir()), [".lock", "debian:6.1"])

        shutil.rmtree(self.mirror.directory)  # fetched kernels need no mirror
        self.assertEqual(json.loads(self.get(0, "debian:6.1", "--headers", "--json").stdout)["headers"], str(here))

    def test_the_tools_may_be_newer_the_headers_not(self):
        self.headers(self.VERSION, "6.1.100-1")
        self.get(0, "debian:6.1", "--headers")
        self.assertEqual((self.home / "lib/linux-kbuild-6.1/tool").read_text(), "6.1.100-1")

    def test_headers_of_another_build_are_refused(self):
        self.headers("6.1.100-1", "6.1.100-1")
        done = self.get(2, "debian:6.1", "--headers")
        self.assertIn(f"it has no linux-headers-{self.RELEASE} {self.VERSION}", done.stderr)
        self.assertIn("slalom kernel remove debian:6.1", done.stderr)
        self.assertFalse(self.home.exists())

    def test_make_could_not_work_there(self):
        self.headers(self.VERSION, self.VERSION)
        self.cache = self.directory / "my cache"
        self.assertIn("without spaces and colons", self.get(2, "debian:6.1", "--headers").stderr)

    def test_only_get_fetches_them(self):
        self.assertIn("--headers is for slalom kernel get", self.run_kernel(2, "list", "--headers").stderr)


class Trouble(KernelCase):
    def nothing_is_left(self):
        self.assertEqual([p.name for p in self.kernels.iterdir()], [".lock"])

    def test_a_name_that_does_not_exist(self):
        done = self.run_kernel(2, "get", "debian:6.2")
        self.assertIn('no kernel called "debian:6.2"; slalom knows debian:5.10, debian:6.1, debian:6.12, debian:sid', done.stderr)

    def test_a_mirror_without_it_is_named_for_each_suite(self):
        done = self.get(2, "debian:5.10")
        self.assertIn("debian:5.10 cannot be fetched:\n", done.stderr)
        self.assertIn(f"  bullseye-security at {self.mirror.url}: ", done.stderr)
        self.assertIn(f"  bullseye at {self.mirror.url}: ", done.stderr)
        self.assertIn("slalom kernel get debian:5.10 --mirror URL", done.stderr)
        self.nothing_is_left()

    def test_no_network(self):
        done = self.run_kernel(2, "get", "debian:sid", "--mirror", "http://127.0.0.1:9/debian")
        self.assertIn("Check the network", done.stderr)
        self.nothing_is_left()

    def test_an_unsigned_mirror_is_refused(self):
        self.mirror.kernel("bookworm-security", "6.1.0-9-cloud-amd64", "6.1.99-1")
        done = self.run_kernel(2, "get", "debian:6.1", "--mirror", self.mirror.url)
        self.assertIn("not signed", done.stderr)
        self.nothing_is_left()

    def test_a_package_that_was_changed_is_refused(self):
        image = self.mirror.kernel("bookworm-security", "6.1.0-9-cloud-amd64", "6.1.99-1")
        data = bytearray(image.read_bytes())
        data[-10] ^= 1
        image.write_bytes(data)
        self.assertIn("debian:6.1 cannot be fetched", self.get(2, "debian:6.1").stderr)
        self.nothing_is_left()

    def test_a_part_that_is_missing_is_named(self):
        self.mirror.package("sid", CLOUD, "7.1-1", depends="linux-image-7.1-cloud-amd64 (= 7.1-1)")
        self.assertIn("needs linux-image-7.1-cloud-amd64, which the mirror does not have", self.get(2, "debian:sid").stderr)

    def test_packages_without_a_kernel(self):
        self.mirror.package("sid", CLOUD, "7.1-1")
        self.assertIn("0 kernel images instead of one", self.get(2, "debian:sid").stderr)

    def test_a_cache_that_cannot_be_written(self):
        self.write("cache", "a file")
        self.assertIn("set SLALOM_CACHE to another directory", self.get(2, "debian:6.1").stderr)

    def test_wrong_usage(self):
        self.assertIn("ACTION is required", self.run_kernel(2).stderr)
        self.assertIn('is get, list or remove, not "fetch"', self.run_kernel(2, "fetch").stderr)
        self.assertIn("with --mirror URL", self.run_kernel(2, "get", "--unsigned").stderr)
        self.assertIn("are for slalom kernel get and list", self.run_kernel(2, "list", "--mirror", "x").stderr)
        self.assertIn("--available is for slalom kernel list", self.run_kernel(2, "get", "--available").stderr)
        self.assertIn("takes no name", self.run_kernel(2, "list", "debian:6.1").stderr)
        self.assertIn("remove which kernel?", self.run_kernel(2, "remove").stderr)


class ListAndRemove(KernelCase):
    def test_list_shows_what_is_here_and_what_could_be(self):
        self.mirror.kernel("bookworm-security", "6.1.0-9-cloud-amd64", "6.1.99-1")
        self.assertIn("debian:6.1   not here; run: slalom kernel get debian:6.1\n", self.run_kernel(0, "list").stdout)
        self.get(0, "debian:6.1")
        shown = self.run_kernel(0, "list").stdout
        self.assertIn("debian:6.1   Linux 6.1.0-9-cloud-amd64 (6.1.99-1)\n", shown)
        self.assertIn("debian:sid   not here", shown)
        entries = json.loads(self.run_kernel(0, "list", "--json").stdout)
        self.assertEqual({e["name"]: e["fetched"] for e in entries},
                         {"debian:5.10": False, "debian:6.1": True, "debian:6.12": False, "debian:sid": False})

    def test_remove(self):
        self.mirror.kernel("bookworm-security", "6.1.0-9-cloud-amd64", "6.1.99-1")
        self.get(0, "debian:6.1")
        self.assertEqual(self.run_kernel(0, "remove", "debian:6.1").stdout, "removed debian:6.1\n")
        self.assertFalse((self.kernels / "debian:6.1").exists())
        self.assertIn("is not here", self.run_kernel(2, "remove", "debian:6.1").stderr)
        self.assertIn("there is no kernel called", self.run_kernel(2, "remove", "../cache").stderr)
        self.assertTrue(self.cache.exists())


if __name__ == "__main__":
    unittest.main()
