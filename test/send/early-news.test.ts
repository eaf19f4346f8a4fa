import { describe, expect, it } from "vitest";
import { NS_PER_S } from "../../src/core/clock.ts";
import { NEWS_EARLY_MAX } from "../../src/core/front-limits.ts";
import { EarlyNews } from "../../src/send/early-news.ts";
import { ACKED, DROPPED, FLYING } from "../../src/send/transport.ts";

describe("news of copies that are not adopted yet", () => {
  it("is told once, by cell and stream, with all that came", () => {
    const news = new EarlyNews();
    expect(news.take(0, 1)).toBeNull();
    news.note(0, 1, FLYING, 5);
    news.note(0, 1, ACKED, 9);
    news.note(1, 1, DROPPED, 7);
    expect(news.take(0, 2)).toBeNull();
    expect(news.take(0, 1)).toEqual({ sentNs: 5, fate: ACKED, endNs: 9, sinceNs: 5 });
    expect(news.take(1, 1)).toEqual({ sentNs: 0, fate: DROPPED, endNs: 7, sinceNs: 7 });
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
});
