import { describe, expect, it } from "vitest";
import { NS_PER_S } from "../../../src/core/clock.ts";
import { NEWS_EARLY_MAX } from "../../../src/send/limits.ts";
import { EarlyNews } from "../../../src/send/native/early-outcomes.ts";
import { ACKED, DROPPED, type Fate, FLYING } from "../../../src/send/transport.ts";

describe("news of copies that are not adopted yet", () => {
  it("is told once, by cell and stream, with all that came", () => {
    const news = new EarlyNews();
    expect(news.take(0, 1)).toBeNull();
    news.note(0, 1, FLYING, 5);
    news.note(0, 1, ACKED, 9);
    news.note(1, 1, DROPPED, 7);
    expect(news.take(0, 2)).toBeNull();
    expect(news.take(0, 1)).toEqual({ sentNs: 5, fate: ACKED, endNs: 9 });
    expect(news.take(1, 1)).toEqual({ sentNs: 0, fate: DROPPED, endNs: 7 });
    expect([news.take(0, 1), news.size, news.aged, news.crowded]).toEqual([null, 0, 0, 0]);
  });

  it("tells apart the last streams of neighbouring cells", () => {
    const news = new EarlyNews();
    news.note(3, 2 ** 32 - 1, ACKED, 1);
    news.note(4, 1, DROPPED, 2);
    expect([news.take(3, 2 ** 32 - 1)?.fate, news.take(4, 1)?.fate]).toEqual([ACKED, DROPPED]);
  });

  it("is forgotten after a second", () => {
    const news = new EarlyNews();
    news.note(0, 1, ACKED, 10);
    news.note(0, 2, ACKED, 20);
    news.expire(NS_PER_S + 9);
    expect(news.size).toBe(2);
    news.expire(NS_PER_S + 10);
    expect([news.size, news.aged, news.crowded, news.take(0, 1)]).toEqual([1, 1, 0, null]);
  });

  it("gives way at the bound, the oldest first", () => {
    const news = new EarlyNews();
    for (let stream = 1; stream <= NEWS_EARLY_MAX + 1; stream += 1) news.note(0, stream, ACKED, 1);
    expect([news.size, news.aged, news.crowded]).toEqual([NEWS_EARLY_MAX, 0, 1]);
    expect([news.take(0, 1), news.take(0, 2)?.fate]).toEqual([null, ACKED]);
  });

  it("is what a map would keep, whatever comes, is taken and grows old", () => {
    let state = 1;
    const random = (below: number): number => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    const news = new EarlyNews();
    const model = new Map<string, { sentNs: number; fate: Fate; endNs: number; sinceNs: number }>();
    let [nowNs, aged, crowded] = [1, 0, 0];
    for (let step = 0; step < 60_000; step += 1) {
      // Too many at first, then few enough to grow old.
      nowNs += random(NS_PER_S / (step < 30_000 ? 8000 : 1000));
      const [cell, stream] = [random(3), (2 ** 32 - 10_000 + random(20_000)) >>> 0];
      const key = `${cell} ${stream}`;
      if (random(10) < 7) {
        const fate = random(2) === 0 ? FLYING : ACKED;
        if (!model.has(key) && model.size === NEWS_EARLY_MAX) {
          model.delete(model.keys().next().value ?? "");
          crowded += 1;
        }
        const known = model.get(key) ?? { sentNs: 0, fate: FLYING, endNs: 0, sinceNs: nowNs };
        model.set(key, known);
        if (fate === FLYING) known.sentNs = nowNs;
        else Object.assign(known, { fate, endNs: nowNs });
        news.note(cell, stream, fate, nowNs);
      } else if (random(3) > 0) {
        const { sinceNs: _, ...known } = model.get(key) ?? { sinceNs: 0 };
        const taken = news.take(cell, stream);
        expect(taken).toEqual(model.delete(key) ? known : null);
      } else if (random(50) === 0) {
        for (const [old, { sinceNs }] of model) {
          if (nowNs - sinceNs < NS_PER_S) break;
          model.delete(old);
          aged += 1;
        }
        news.expire(nowNs);
      }
      expect(news.size).toBe(model.size);
    }
    expect([news.aged, news.crowded]).toEqual([aged, crowded]);
    expect([aged > 0, crowded > 0]).toEqual([true, true]);
  });
});
