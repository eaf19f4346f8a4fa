import { describe, expect, it } from "vitest";
import { createSystemd, type SystemdVariables, toldToSystemd } from "../../src/cli/systemd.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const PID = 4711;

function setUp(variables: SystemdVariables, canSend = true) {
  const clock = createFakeClock();
  const sent: (readonly [string, string])[] = [];
  const errors: string[] = [];
  let isHeard = true;
  const send = (socket: string, message: string): boolean => {
    sent.push([socket, message]);
    return isHeard;
  };
  const systemd = createSystemd(variables, PID, {
    clock,
    err: (line) => void errors.push(line),
    send: canSend ? send : null,
  });
  const goDeaf = (): void => {
    isHeard = false;
  };
  return { clock, systemd, sent, errors, goDeaf, messages: () => sent.map(([, text]) => text) };
}

const WITH_WATCHDOG = { NOTIFY_SOCKET: "/run/notify", WATCHDOG_USEC: "10000000" };

describe("messages to systemd", () => {
  it("go to the socket of NOTIFY_SOCKET, each with a status of one line", () => {
    const { systemd, sent, clock } = setUp({ NOTIFY_SOCKET: "@notify" });
    systemd.ready("HTTP on\n127.0.0.1:1\nMAINPID=1");
    systemd.stopping("draining");
    expect(sent).toEqual([
      ["@notify", "READY=1\nSTATUS=HTTP on 127.0.0.1:1 MAINPID=1"],
      ["@notify", "STOPPING=1\nSTATUS=draining"],
    ]);
    expect(clock.pending).toBe(0);
  });

  it("are not sent without NOTIFY_SOCKET", () => {
    for (const variables of [{}, { NOTIFY_SOCKET: "" }, { WATCHDOG_USEC: "1000000" }]) {
      const { systemd, sent, errors, clock } = setUp(variables, false);
      systemd.ready("serving");
      systemd.reloading("starting");
      systemd.follow(1, "successor");
      systemd.stopping("draining");
      expect(sent).toEqual([]);
      expect(errors).toEqual([]);
      expect(clock.pending).toBe(0);
    }
  });

  it("say on standard error what is missing where nothing can send them", () => {
    const { systemd, errors, clock } = setUp(WITH_WATCHDOG, false);
    systemd.ready("serving");
    expect(errors).toHaveLength(1);
    expect(errors[0]).toContain("Build that engine");
    expect(errors[0]).toContain("Type=exec");
    expect(clock.pending).toBe(0);
  });

  it("report once that the socket does not take them", () => {
    const { systemd, errors, goDeaf } = setUp(WITH_WATCHDOG);
    goDeaf();
    systemd.ready("serving");
    systemd.stopping("draining");
    expect(errors).toEqual(["systemd cannot be told READY=1: /run/notify does not take messages"]);
  });

  it("give the time of a reload in microseconds of the monotonic clock", () => {
    const { systemd, clock, messages } = setUp({ NOTIFY_SOCKET: "/run/notify" });
    systemd.reloading("starting");
    const usec = Math.floor(clock.nowNs() / 1_000);
    expect(messages()).toEqual([`RELOADING=1\nMONOTONIC_USEC=${usec}\nSTATUS=starting`]);
  });
});

describe("the watchdog", () => {
  it("hears from a ready process at half of its time", () => {
    const { systemd, clock, messages } = setUp(WITH_WATCHDOG);
    clock.advance(20_000);
    expect(messages()).toEqual([]);
    systemd.ready("serving");
    clock.advance(4_999);
    expect(messages()).toHaveLength(1);
    clock.advance(1);
    expect(messages()[1]).toBe("WATCHDOG=1");
    clock.advance(10_000);
    expect(messages()).toHaveLength(4);
  });

  it("hears nothing from a process that it does not watch, nor with a wrong time", () => {
    const others = [
      { ...WITH_WATCHDOG, WATCHDOG_PID: "1" },
      { ...WITH_WATCHDOG, WATCHDOG_USEC: "0" },
      { ...WITH_WATCHDOG, WATCHDOG_USEC: "soon" },
    ];
    for (const variables of others) {
      const { systemd, clock } = setUp(variables);
      systemd.ready("serving");
      expect(clock.pending).toBe(0);
    }
    const { systemd, clock } = setUp({ ...WITH_WATCHDOG, WATCHDOG_PID: String(PID) });
    systemd.ready("serving");
    expect(clock.pending).toBe(1);
  });

  it("hears no more from a process that another one replaced", () => {
    const { systemd, clock, messages } = setUp(WITH_WATCHDOG);
    systemd.ready("serving");
    systemd.follow(815, "handed over");
    clock.advance(60_000);
    expect(messages()).toEqual([
      "READY=1\nSTATUS=serving",
      "MAINPID=815\nREADY=1\nSTATUS=handed over",
    ]);
    expect(clock.pending).toBe(0);
  });
});

it("the stop of a service is told before it begins", async () => {
  const { systemd, messages } = setUp({ NOTIFY_SOCKET: "/run/notify" });
  const steps: string[] = [];
  const service = toldToSystemd(
    {
      drain: () => void steps.push(`drain after ${messages().length}`),
      disableKeepAlive: () => void steps.push("disable keep-alive"),
      stop: async () => void steps.push(`stop after ${messages().length}`),
    },
    systemd,
  );
  service.drain();
  service.disableKeepAlive?.();
  await service.stop();
  expect(steps).toEqual(["drain after 1", "disable keep-alive", "stop after 2"]);
  expect(messages().every((message) => message.startsWith("STOPPING=1\n"))).toBe(true);
});
