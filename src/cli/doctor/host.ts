/**
 * What `doctor` checks on the host, read from /proc and /sys. Each check says so when this machine
 * or container does not show what it needs.
 */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../config/config.ts";
import { EDGE_FILES_MAX, UPSTREAM_CONNECTIONS_MAX } from "../../edge/limits.ts";
import { FILES_PER_UPSTREAM_CONNECTION, filesMaxOf } from "../../edge/open-file-limit.ts";
import { type Finding, findingsOf } from "./finding.ts";

export interface Host {
  /** The folder that holds `proc` and `sys`; "/" on a real host. */
  readonly root: string;
  /** Processors that this process may use. */
  readonly processors: number;
}

export type HostConfig = Pick<Config, "http" | "host">;

const { ok, warning, unknown } = findingsOf("host");

export function hostFindings(host: Host, config: HostConfig): readonly Finding[] {
  const read = readerOf(host.root);
  return [
    openFiles(read, config),
    ...socketBuffers(read),
    udpDrops(read),
    gso(read),
    idleStates(host, config),
    governor(read),
    interrupts(host, read),
    isolation(host, read),
    clockSource(read),
    clockSync(host, read),
  ];
}

type Read = (path: string) => string | null;

/** Reads a file below the root; null if it is not there or may not be read. */
function readerOf(root: string): Read {
  return (path) => {
    try {
      return readFileSync(join(root, path), "utf8").trim();
    } catch {
      return null;
    }
  };
}

function notShown(check: string, path: string, fix: string | null = null): Finding {
  return unknown(check, `this machine or container does not show /${path}`, fix);
}

function openFiles(read: Read, { http }: HostConfig): Finding {
  const text = read("proc/self/limits");
  if (text === null) return notShown("open_files", "proc/self/limits", "ulimit -n");
  const files = filesMaxOf(text);
  const wanted = http.connections + FILES_BESIDES_CLIENTS;
  if (files >= wanted) return ok("open_files", `${files} may be open, ${wanted} are enough`);
  return warning(
    "open_files",
    `${files} may be open, http.connections = ${http.connections} needs ${wanted}`,
    "the edge takes fewer connections than http.connections says, and closes further ones",
    `LimitNOFILE=${wanted} in the unit (not seen from here), ` +
      `--ulimit nofile=${wanted} of Docker, or \`ulimit -n ${wanted}\``,
  );
}

/** The last 256 are for worker threads: this check does not know how many there will be. */
const FILES_BESIDES_CLIENTS =
  FILES_PER_UPSTREAM_CONNECTION * UPSTREAM_CONNECTIONS_MAX + EDGE_FILES_MAX + 256;

/** The size that the native engine asks for: `SOCKET_BUFFER_BYTES` in native/src/quic/limits.rs. */
export const ENGINE_SOCKET_BYTES = 4 * 1024 * 1024;

function socketBuffers(read: Read): readonly Finding[] {
  const sides = [
    { check: "udp_receive_buffer", key: "rmem_max", what: "acknowledgements of leaders" },
    { check: "udp_send_buffer", key: "wmem_max", what: "transactions of a burst" },
  ];
  return sides.map(({ check, key, what }) => {
    const path = `proc/sys/net/core/${key}`;
    const text = read(path);
    if (text === null) return notShown(check, path, `sysctl net.core.${key}`);
    const bytes = Number(text);
    if (bytes >= ENGINE_SOCKET_BYTES) return ok(check, `net.core.${key} is ${bytes}`);
    return warning(
      check,
      `net.core.${key} is ${bytes}, the engine asks for ${ENGINE_SOCKET_BYTES}`,
      `the kernel drops ${what} when a thread is late; they are sent again a round trip later`,
      `sysctl -w net.core.${key}=${ENGINE_SOCKET_BYTES}`,
    );
  });
}

/** Drops since the host started, of all its sockets. */
function udpDrops(read: Read): Finding {
  const lines = (read("proc/net/snmp") ?? "").split("\n").filter((line) => line.startsWith("Udp:"));
  const [names = "", values = ""] = lines;
  const countOf = (name: string): number =>
    Number(values.split(/\s+/)[names.split(/\s+/).indexOf(name)] ?? Number.NaN);
  const received = countOf("RcvbufErrors");
  const sent = countOf("SndbufErrors");
  if (Number.isNaN(received) || Number.isNaN(sent)) return notShown("udp_drops", "proc/net/snmp");
  if (received + sent === 0) return ok("udp_drops", "no datagram was dropped for a full buffer");
  return warning(
    "udp_drops",
    `since the host started ${received} received datagrams and ${sent} to be sent were dropped ` +
      "for full buffers, of all programs",
    "a lost acknowledgement or transaction is sent again a round trip later",
    "larger buffers as above; `nstat -az UdpRcvbufErrors UdpSndbufErrors` shows whether it goes on",
  );
}

/** UDP_SEGMENT came with Linux 4.18. */
function gso(read: Read): Finding {
  const release = read("proc/sys/kernel/osrelease");
  if (release === null) return notShown("gso", "proc/sys/kernel/osrelease", "uname -r");
  const [major = 0, minor = 0] = release.split(".").map((part) => Number.parseInt(part, 10));
  if (major > 4 || (major === 4 && minor >= 18)) {
    return ok("gso", `Linux ${release} segments datagrams: one system call sends a batch`);
  }
  return warning(
    "gso",
    `Linux ${release} does not segment datagrams, 4.18 and newer do`,
    "each datagram of a burst takes a system call of its own",
    "a newer kernel",
  );
}

/** Longer wake-ups than this count as deep. */
const WAKE_UP_US_MAX = 10;

/** The processors that this process may use; null if they are not shown. */
function ownCpus(read: Read): ReadonlySet<number> | null {
  return cpusOf(/^Cpus_allowed_list:\s*(\S+)/m.exec(read("proc/self/status") ?? "")?.[1]);
}

/** The folder of the first of them, which stands for all. */
function ownCpuFolder(read: Read): string {
  const [first = 0] = ownCpus(read) ?? [];
  return `sys/devices/system/cpu/cpu${first}`;
}

/** Of Linux in a virtual machine: for how long an idle processor polls before it halts. */
const HALT_POLL = "sys/module/haltpoll/parameters/guest_halt_poll_ns";
/** The kernel's own default (Documentation/virt/guest-halt-polling.rst). */
const HALT_POLL_NS = 200_000;

function idleStates({ root }: Host, { host }: HostConfig): Finding {
  const read = readerOf(root);
  if (read(HALT_POLL) === "0" && !host.busyPoll) {
    return warning(
      "c_states",
      "this virtual machine's processors halt as soon as they are idle",
      "up to 0.1 ms for a transaction that comes alone: the hypervisor must wake the threads",
      `echo ${HALT_POLL_NS} > /${HALT_POLL}, or host.busy_poll = true`,
    );
  }
  const path = `${ownCpuFolder(read)}/cpuidle`;
  const states = foldersIn(root, path).flatMap((folder) => {
    const latencyUs = Number(read(`${path}/${folder}/latency`) ?? Number.NaN);
    const isDisabled = read(`${path}/${folder}/disable`) === "1";
    const name = read(`${path}/${folder}/name`) ?? folder;
    return Number.isNaN(latencyUs) || isDisabled ? [] : [{ name, latencyUs }];
  });
  const fix = `cpupower idle-set -D ${WAKE_UP_US_MAX}`;
  if (states.length === 0) return notShown("c_states", path, "cpupower idle-info, on the host");
  const deepest = states.reduce((a, b) => (b.latencyUs > a.latencyUs ? b : a));
  const found = `the deepest idle state, ${deepest.name}, takes ${deepest.latencyUs} us to leave`;
  if (deepest.latencyUs <= WAKE_UP_US_MAX || host.busyPoll) return ok("c_states", found);
  return warning(
    "c_states",
    found,
    `up to ${deepest.latencyUs} us for each transaction that finds its thread asleep`,
    `${fix}, or host.busy_poll = true`,
  );
}

function governor(read: Read): Finding {
  const path = `${ownCpuFolder(read)}/cpufreq/scaling_governor`;
  const found = read(path);
  if (found === null) return notShown("cpu_governor", path, "cpupower frequency-info, on the host");
  if (found === "performance") return ok("cpu_governor", "performance");
  return warning(
    "cpu_governor",
    `${found}: a processor with little to do runs at a low frequency`,
    "a transaction that comes alone takes longer: the frequency rises only under load",
    "cpupower frequency-set -g performance",
  );
}

/** Queues of a virtual network device have numbers; a random generator has a `virtio0-input`. */
const VIRTIO_QUEUE = "virtio\\d+-(?:input|output)\\.\\d";

/** On fewer processors threads and interrupts cannot have processors of their own. */
const PROCESSORS_TO_SPLIT = 4;

function interrupts({ root, processors }: Host, read: Read): Finding {
  const table = read("proc/interrupts");
  if (table === null) return notShown("irq_affinity", "proc/interrupts");
  const devices = foldersIn(root, "sys/class/net").filter((name) => name !== "lo");
  const names = new RegExp(`(?:${[...devices, VIRTIO_QUEUE].join("|")})`);
  const numbers = table.split("\n").flatMap((line) => {
    const number = /^\s*(\d+):/.exec(line)?.[1];
    return number !== undefined && names.test(line) ? [number] : [];
  });
  const own = ownCpus(read);
  const affinities = numbers.map((number) => cpusOf(read(`proc/irq/${number}/smp_affinity_list`)));
  if (own === null || affinities.length === 0 || affinities.includes(null)) {
    return unknown(
      "irq_affinity",
      "this machine or container does not show the interrupts of its network devices",
      "grep . /proc/irq/*/smp_affinity_list, on the host",
    );
  }
  if (processors < PROCESSORS_TO_SPLIT) {
    return ok("irq_affinity", `${processors} processors are too few to keep interrupts apart`);
  }
  const shared = affinities.filter((cpus) => [...own].every((cpu) => cpus?.has(cpu) === true));
  if (shared.length === 0) return ok("irq_affinity", "network interrupts have their processors");
  return warning(
    "irq_affinity",
    `${shared.length} of ${numbers.length} network interrupts may run on all of its processors`,
    "a burst of packets takes the processor from the thread that handles a transaction",
    `echo 0 > /proc/irq/${numbers[0] ?? "N"}/smp_affinity_list, for each; and stop irqbalance`,
  );
}

function isolation({ processors }: Host, read: Read): Finding {
  const path = "sys/devices/system/cpu/isolated";
  const isolated = read(path);
  if (isolated === null) return notShown("cpu_isolation", path, "cat /proc/cmdline, on the host");
  const allowed = ownCpus(read);
  const online = cpusOf(read("sys/devices/system/cpu/online"));
  const isPinned = allowed !== null && online !== null && allowed.size < online.size;
  if (isolated !== "") return ok("cpu_isolation", `processors ${isolated} are isolated`);
  if (isPinned) return ok("cpu_isolation", "this process has processors assigned to it");
  if (processors < PROCESSORS_TO_SPLIT) {
    return ok("cpu_isolation", `${processors} processors are too few to isolate some`);
  }
  return warning(
    "cpu_isolation",
    "no processor is isolated, and this process may run on all of them",
    "another program may take a processor from an ingress thread for milliseconds",
    "CPUAffinity= in the unit and in those of other services, isolcpus=, or host.realtime = true",
  );
}

/** Sources that a reading of the clock takes without a system call. */
const FAST_CLOCKS = ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"];

function clockSource(read: Read): Finding {
  const path = "sys/devices/system/clocksource/clocksource0/current_clocksource";
  const source = read(path);
  if (source === null) return notShown("clock_source", path);
  if (FAST_CLOCKS.includes(source)) return ok("clock_source", source);
  return warning(
    "clock_source",
    `${source}: each reading of the clock is a system call`,
    "about a microsecond for each of the readings that a transaction takes",
    `echo tsc > /${path}, if available_clocksource there names it`,
  );
}

function clockSync({ root }: Host, read: Read): Finding {
  // systemd-timesyncd touches the file with each synchronization; chronyd and ntpd keep folders.
  const isSynchronized = read("run/systemd/timesync/synchronized") !== null;
  if (isSynchronized) return ok("clock_sync", "systemd-timesyncd has synchronized the clock");
  const [daemon] = ["run/chrony", "run/ntpd.pid"].filter((path) => exists(root, path));
  if (daemon !== undefined) return ok("clock_sync", `a time daemon runs (/${daemon})`);
  return unknown(
    "clock_sync",
    "no time daemon is visible here; with a wrong clock keys expire at the wrong time",
    "timedatectl show -p NTPSynchronized, on the host",
  );
}

function exists(root: string, path: string): boolean {
  const at = path.lastIndexOf("/");
  return foldersIn(root, path.slice(0, at)).includes(path.slice(at + 1));
}

function foldersIn(root: string, path: string): readonly string[] {
  try {
    return readdirSync(join(root, path)).sort();
  } catch {
    return [];
  }
}

/** Numbers of a list such as `0-3,8`; null if there is none. */
export function cpusOf(list: string | null | undefined): ReadonlySet<number> | null {
  if (list === null || list === undefined || !/^\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*$/.test(list))
    return null;
  const cpus = new Set<number>();
  for (const part of list.split(",")) {
    const [first = 0, last = first] = part.split("-").map(Number);
    for (let cpu = first; cpu <= Math.min(last, first + CPUS_MAX); cpu += 1) cpus.add(cpu);
  }
  return cpus;
}

/** Linux allows 8,192 processors, 2026-11. */
const CPUS_MAX = 8192;
