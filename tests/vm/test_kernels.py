"""Every kernel in the cache boots with one and two CPUs, runs a command and switches itself off."""

from guest import Guest, cached_kernels, main


class Kernels(Guest):
    def test_each_runs_a_command_and_switches_off(self):
        for kernel in cached_kernels():
            for cpus in (1, 2):
                with self.subTest(kernel=kernel, cpus=cpus):
                    said = self.lines(self.boot("--kernel", kernel, "--cpus", cpus, "--run", "echo hello; nproc; uname -s"))
                    self.assertEqual(said, ["hello", str(cpus), "Linux"])


if __name__ == "__main__":
    main()
