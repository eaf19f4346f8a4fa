import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { cpusOf, hostFindings } from "../../../src/cli/doctor/host.ts";
import { configFromValues } from "../../../src/config/load.ts";

const TIP = "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5";
const CONFIG = configFromValues(
  { tip: { accounts: [TIP] }, accounts: { keys_file: "keys.toml" } },
  "/",
  {},
);

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "touchdown-host-"));
});
afterEach(() => rmSync(root, { recursive: true }));

const CPU = "sys/devices/system/cpu";
const CLOCK = "sys/devices/system/clocksource/clocksource0/current_clocksource";
const SNMP =
  "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\nUdp: 9 0 0 9";

/** A processor with a deep idle state. */
const cpu = (number: number, isDisabled: "0" | "1", governor: string) => ({
  [`${CPU}/cpu${number}/cpuidle/state0/name`]: "POLL\n",
  [`${CPU}/cpu${number}/cpuidle/state0/latency`]: "0\n",
  [`${CPU}/cpu${number}/cpuidle/state1/name`]: "C6\n",
  [`${CPU}/cpu${number}/cpuidle/state1/latency`]: "133\n",
  [`${CPU}/cpu${number}/cpuidle/state1/disable`]: `${isDisabled}\n`,
  [`${CPU}/cpu${number}/cpufreq/scaling_governor`]: `${governor}\n`,
});

/** A host on which all is in order. */
const GOOD: Readonly<Record<string, string>> = {
  "proc/self/limits": "Max open files            65536                65536                files\n",
  "proc/self/status": "Name:\tnode\nCpus_allowed_list:\t4-7\n",
  "proc/sys/net/core/rmem_max": "4194304\n",
  "proc/sys/net/core/wmem_max": "4194304\n",
  "proc/net/snmp": `${SNMP} 0 0\n`,
  "proc/sys/kernel/osrelease": "6.12.0-1\n",
  "proc/interrupts": "  24:  1  0  IO-APIC 5-edge ACPI:Ged\n  30:  9  0  PCI-MSIX eth0-TxRx-0\n",
  "proc/irq/24/smp_affinity_list": "0-7\n",
  "proc/irq/30/smp_affinity_list": "0-1\n",
  "sys/class/net/eth0/mtu": "1500\n",
  "sys/class/net/lo/mtu": "65536\n",
  [`${CPU}/isolated`]: "4-7\n",
  [`${CPU}/online`]: "0-7\n",
  // Of a processor that this process may use, and of one that it may not.
  ...cpu(4, "1", "performance"),
  ...cpu(0, "0", "powersave"),
  [CLOCK]: "tsc\n",
  "run/systemd/timesync/synchronized": "\n",
};

function findings(change: Readonly<Record<string, string>> = {}, processors = 8) {
  for (const [path, text] of Object.entries({ ...GOOD, ...change })) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return hostFindings({ root, processors }, CONFIG);
}

const levels = (found: ReturnType<typeof hostFindings>) =>
  Object.fromEntries(found.filter(({ level }) => level !== "ok").map((f) => [f.check, f.level]));

describe("the host", () => {
  it("has nothing to change where all is in order", () => {
    expect(levels(findings())).toEqual({});
  });

  it.each([
    [
      "open_files",
      { "proc/self/limits": "Max open files   4096   4096   files\n" },
      "in the unit (not seen from here), --ulimit nofile=",
    ],
    ["udp_receive_buffer", { "proc/sys/net/core/rmem_max": "212992" }, "net.core.rmem_max=4194304"],
    ["udp_send_buffer", { "proc/sys/net/core/wmem_max": "212992" }, "net.core.wmem_max=4194304"],
    ["udp_drops", { "proc/net/snmp": `${SNMP} 7 0\n` }, "nstat"],
    ["gso", { "proc/sys/kernel/osrelease": "4.17.9\n" }, "kernel"],
    ["c_states", { [`${CPU}/cpu4/cpuidle/state1/disable`]: "0\n" }, "cpupower idle-set"],
    [
      "c_states",
      { "sys/module/haltpoll/parameters/guest_halt_poll_ns": "0\n" },
      "echo 200000 > /sys/module/haltpoll/parameters/guest_halt_poll_ns",
    ],
    [
      "cpu_governor",
      { [`${CPU}/cpu4/cpufreq/scaling_governor`]: "powersave" },
      "frequency-set -g performance",
    ],
    ["irq_affinity", { "proc/irq/30/smp_affinity_list": "0-7" }, "/proc/irq/30/smp_affinity_list"],
    ["cpu_isolation", { [`${CPU}/isolated`]: "\n", [`${CPU}/online`]: "4-7\n" }, "CPUAffinity="],
    ["clock_source", { [CLOCK]: "hpet\n" }, "echo tsc"],
  ])("warns of %s alone, with its cost and its fix", (check, change, fix) => {
    const found = findings(change);
    expect(levels(found)).toEqual({ [check]: "warning" });
    const finding = found.find((each) => each.check === check);
    expect(finding?.cost).toMatch(/\w/);
    expect(finding?.fix).toContain(fix);
  });

  it("tells the queues of a virtual network device from other devices", () => {
    const line = (number: number, name: string) => `  ${number}:  9  0  PCI-MSIX ${name}\n`;
    const change = {
      "proc/interrupts": line(34, "virtio4-input") + line(38, "virtio2-input.0"),
      "proc/irq/34/smp_affinity_list": "0-7",
      "proc/irq/38/smp_affinity_list": "0-1",
    };
    expect(levels(findings(change))).toEqual({});
    const shared = findings({ ...change, "proc/irq/38/smp_affinity_list": "0-7" });
    expect(shared.find(({ check }) => check === "irq_affinity")?.message).toMatch(/^1 of 1 /);
  });

  it("does not ask two processors to be split", () => {
    const change = { [`${CPU}/isolated`]: "\n", "proc/irq/30/smp_affinity_list": "0-7" };
    expect(levels(findings(change, 2))).toEqual({});
  });

  it("is unknown, not in order, where /proc and /sys are not there", () => {
    const found = hostFindings({ root, processors: 8 }, CONFIG);
    expect(new Set(found.map(({ level }) => level))).toEqual(new Set(["unknown"]));
    for (const { message } of found) expect(message).toMatch(/not show|is visible/);
  });
});

describe("a list of processors", () => {
  it("is read as the kernel writes it", () => {
    expect([...(cpusOf("0-2,5") ?? [])]).toEqual([0, 1, 2, 5]);
    expect([cpusOf(""), cpusOf(null), cpusOf("x"), cpusOf("1-")]).toEqual([null, null, null, null]);
  });
});
