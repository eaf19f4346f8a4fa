import {
  address,
  createSolanaRpc,
  createSolanaRpcSubscriptions,
  lamports,
  signature as signatureOf,
} from "@solana/kit";
import { PublicKey } from "@solana/web3.js";
import { afterEach, describe, expect, it, vi } from "vitest";
import { encodeKey } from "../../src/core/encoding.ts";
import { buildTransaction, newKeypair } from "../support/transactions.ts";
import { alpenglow, atEnd, endAll, LEADERS, land, setUpRunning } from "./cluster-fixture.ts";

const WAIT = { timeout: 30_000, interval: 20 };
afterEach(endAll);

describe("web3.js on the simulated cluster", () => {
  it("reads slots, epochs, leaders and nodes", async () => {
    const { cluster, web3 } = await setUpRunning();
    const before = cluster.currentSlot();
    const slot = await web3.getSlot("processed");
    expect(slot).toBeGreaterThanOrEqual(before);
    expect(slot).toBeLessThanOrEqual(cluster.currentSlot());
    expect(await web3.getBlockHeight("processed")).toBeGreaterThanOrEqual(slot);
    const info = await web3.getEpochInfo("processed");
    expect(info).toMatchObject({ epoch: 2, slotsInEpoch: 432 });
    expect(info.absoluteSlot - info.slotIndex).toBe(864);
    const schedule = await web3.getEpochSchedule();
    expect(schedule.getFirstSlotInEpoch(3)).toBe(1296);
    const leaders = await web3.getLeaderSchedule();
    expect(Object.keys(leaders).sort()).toEqual(LEADERS.map((each) => each.identity).sort());
    for (const [identity, indexes] of Object.entries(leaders)) {
      expect(cluster.leaderAt(864 + (indexes[5] ?? 0))).toBe(identity);
    }
    const next = await web3.getSlotLeaders(slot, 10);
    expect(next.map(String)).toEqual(
      Array.from({ length: 10 }, (_, index) => cluster.leaderAt(slot + index)),
    );
    expect(LEADERS.map((each) => each.identity)).toContain(await web3.getSlotLeader("processed"));
    const nodes = await web3.getClusterNodes();
    expect(nodes[1]).toMatchObject({
      pubkey: LEADERS[1]?.identity,
      tpu: null,
      tpuQuic: LEADERS[1]?.address,
    });
    expect((await web3.getVoteAccounts()).current).toHaveLength(LEADERS.length);
    expect((await web3.getVersion())["solana-core"]).toMatch(/^4\./);
    expect(await web3.getGenesisHash()).toHaveLength(44);
  });

  it("funds an account, reads it, and confirms a transaction over the WebSocket", async () => {
    const { cluster, web3 } = await setUpRunning();
    const payer = newKeypair();
    const owner = new PublicKey(payer.address);
    const airdrop = await web3.requestAirdrop(owner, 5_000_000_000);
    expect((await web3.getSignatureStatus(airdrop)).value?.err).toBeNull();
    expect(await web3.getBalance(owner)).toBe(5_000_000_000);
    expect((await web3.getAccountInfo(owner))?.lamports).toBe(5_000_000_000);
    expect(await web3.getAccountInfo(new PublicKey(newKeypair().address))).toBeNull();
    const { blockhash, lastValidBlockHeight } = await web3.getLatestBlockhash();
    expect(lastValidBlockHeight - (await web3.getBlockHeight())).toBeGreaterThan(140);
    expect((await web3.isBlockhashValid(blockhash)).value).toBe(true);
    const { signature } = land(cluster, blockhash, payer);
    const strategy = { signature, blockhash, lastValidBlockHeight };
    const confirmed = await web3.confirmTransaction(strategy, "confirmed");
    expect(confirmed.value.err).toBeNull();
    const { value } = await web3.getSignatureStatuses([signature, airdrop]);
    expect(value[0]).toMatchObject({ err: null, slot: cluster.statusOf(signature)?.slot });
    expect(value[1]?.err).toBeNull();
    expect(await web3.getMinimumBalanceForRentExemption(0)).toBe(890_880);
  });

  it("serves the sysvar of recent blockhashes, newest first", async () => {
    const { web3 } = await setUpRunning();
    const account = new PublicKey("SysvarRecentB1ockHashes11111111111111111111");
    const latest = await web3.getLatestBlockhash("confirmed");
    const info = await web3.getAccountInfo(account, "confirmed");
    const data = info?.data ?? Buffer.alloc(8);
    const count = Number(data.readBigUInt64LE());
    expect(data).toHaveLength(8 + 40 * count);
    const hashes = Array.from({ length: count }, (_, index) =>
      encodeKey(data.subarray(8 + 40 * index, 40 + 40 * index)),
    );
    expect(hashes).toContain(latest.blockhash);
    expect(new Set(hashes).size).toBe(count);
    expect((await web3.isBlockhashValid(hashes.at(-1) ?? "")).value).toBe(true);
  });

  it("receives slots from both subscriptions", async () => {
    const { web3 } = await setUpRunning();
    const slots: number[] = [];
    const updates: string[] = [];
    const one = web3.onSlotChange(({ slot }) => void slots.push(slot));
    const two = web3.onSlotUpdate(({ type }) => void updates.push(type));
    const kinds = ["firstShredReceived", "createdBank", "completed", "frozen", "root"];
    await vi.waitFor(() => {
      expect(slots.length).toBeGreaterThan(4);
      expect(new Set(updates)).toEqual(new Set([...kinds, "optimisticConfirmation"]));
    }, WAIT);
    expect(slots).toEqual([...slots].sort((a, b) => a - b));
    await web3.removeSlotChangeListener(one);
    await web3.removeSlotUpdateListener(two);
  });
});

describe("an airdrop", () => {
  it.each([1, 890_879, 2e15])("of %i lamports that did not happen is an error", async (amount) => {
    const { cluster, post } = await setUpRunning();
    const { address: owner } = newKeypair();
    const { text } = await post({ id: 1, method: "requestAirdrop", params: [owner, amount] });
    expect(JSON.parse(text)).toMatchObject({ error: { code: -32603 } });
    expect(cluster.balance(owner)).toBe(0n);
  });
});

describe("kit on the simulated cluster", () => {
  it("reads what it needs to send a transaction and to observe its landing", async () => {
    const { cluster, rpcUrl } = await setUpRunning();
    const kit = createSolanaRpc(rpcUrl);
    const payer = newKeypair();
    expect(await kit.getHealth().send()).toBe("ok");
    await kit.requestAirdrop(address(payer.address), lamports(2_000_000_000n)).send();
    const balance = await kit.getBalance(address(payer.address)).send();
    expect(balance.value).toBe(2_000_000_000n);
    const info = await kit.getAccountInfo(address(payer.address), { encoding: "base64" }).send();
    expect(info.value?.lamports).toBe(2_000_000_000n);
    const { value } = await kit.getLatestBlockhash({ commitment: "processed" }).send();
    const { signature } = land(cluster, value.blockhash, payer);
    const statuses = await kit.getSignatureStatuses([signatureOf(signature)]).send();
    expect(statuses.value[0]).toMatchObject({ err: null, status: { Ok: null } });
    const leaders = await kit.getLeaderSchedule(1296n).send();
    expect(Object.keys(leaders ?? {})).toHaveLength(LEADERS.length);
    expect(await kit.getLeaderSchedule(99_999n).send()).toBeNull();
    const nodes = await kit.getClusterNodes().send();
    expect(nodes.map((node) => node.pubkey)).toEqual(LEADERS.map((each) => each.identity));
    expect((await kit.getEpochInfo({ commitment: "processed" }).send()).epoch).toBe(2n);
    const fee = await kit
      .getFeeForMessage(
        Buffer.from(
          buildTransaction({ payer, tips: [{ to: payer.publicKey, lamports: 1 }] }).message,
        ).toString("base64") as Parameters<typeof kit.getFeeForMessage>[0],
      )
      .send();
    expect(fee.value).toBe(5000n);
  });

  it("receives slots", async () => {
    const { wsUrl } = await setUpRunning();
    const subscriptions = createSolanaRpcSubscriptions(wsUrl);
    const abort = new AbortController();
    atEnd(() => abort.abort());
    const notifications = await subscriptions
      .slotNotifications()
      .subscribe({ abortSignal: abort.signal });
    let before = 0n;
    let count = 0;
    for await (const { slot } of notifications) {
      expect(slot).toBeGreaterThan(before);
      before = slot;
      count += 1;
      if (count === 3) break;
    }
  });
});

describe("a block of the simulated cluster", () => {
  it("contains its signatures, and each has a status unless configured otherwise", async () => {
    const { cluster, web3, post } = await setUpRunning();
    const { signature } = land(cluster, cluster.latestBlockhash());
    const landed = cluster.statusOf(signature)?.slot ?? 0;
    await vi.waitFor(async () => {
      expect(await web3.getSlot("confirmed")).toBeGreaterThan(landed);
    }, WAIT);
    const ask = async (method: string, params: unknown[]) =>
      JSON.parse((await post({ jsonrpc: "2.0", id: 1, method, params })).text);
    const detail = { transactionDetails: "signatures", rewards: false };
    const { result } = await ask("getBlock", [landed, detail]);
    expect(result).toMatchObject({ parentSlot: landed - 1 });
    expect(result.signatures.at(-1)).toBe(signature);
    const [vote] = result.signatures;
    const statuses = () => ask("getSignatureStatuses", [[vote, signature]]);
    expect((await statuses()).result.value).toMatchObject([{ slot: landed }, { slot: landed }]);
    const missing = await ask("getBlock", [landed + 9_000, detail]);
    expect(missing).toMatchObject({ error: { code: -32007 } });
    expect(await ask("getBlock", [landed])).toMatchObject({ error: { code: -32602 } });
    cluster.behave({ statuses: "silent" });
    expect((await statuses()).result.value).toEqual([null, null]);
    cluster.behave({ statuses: "unsupported" });
    expect(await statuses()).toMatchObject({ error: { code: -32601 } });
  });
});

describe("the simulated RPC with Alpenglow", () => {
  type Post = (body: unknown) => Promise<{ readonly text: string }>;
  const resultsOf = async (post: Post, calls: readonly (readonly [string, ...unknown[]])[]) => {
    const body = calls.map(([method, ...params], id) => ({ jsonrpc: "2.0", id, method, params }));
    // A batch answers in its order.
    const answers = JSON.parse((await post(body)).text) as readonly { result: unknown }[];
    return answers.map(({ result }) => result);
  };
  const slots = ["processed", "confirmed", "finalized"].map(
    (commitment) => ["getSlot", { commitment }] as const,
  );

  it("has the same confirmed and finalized slot, one below the processed one", async () => {
    const { post } = await setUpRunning(alpenglow());
    const [processed, confirmed, finalized] = await resultsOf(post, slots);
    expect([confirmed, finalized]).toEqual([Number(processed) - 1, Number(processed) - 1]);
  });

  it("reports a processed slot below the confirmed one when the node is behind", async () => {
    const { cluster, post } = await setUpRunning(alpenglow({ behindShare: 1 }));
    const { signature } = land(cluster, cluster.latestBlockhash());
    const slot = cluster.statusOf(signature)?.slot ?? 0;
    await vi.waitFor(async () => {
      const statuses = ["getSignatureStatuses", [signature]] as const;
      const newest = ["isBlockhashValid", cluster.latestBlockhash()] as const;
      const results = await resultsOf(post, [...slots, statuses, newest]);
      const [processed, confirmed, finalized, status, validity] = results;
      expect([processed, finalized]).toEqual([Number(confirmed) - 1, confirmed]);
      expect(validity).toMatchObject({ context: { slot: processed }, value: false });
      // A status is of the block that the node reports as processed.
      const value = Number(processed) < slot ? [null] : [{ slot, confirmationStatus: "finalized" }];
      expect(status).toMatchObject({ context: { slot: processed }, value });
      expect(Number(processed)).toBeGreaterThan(slot);
    }, WAIT);
  });

  it("has blocks without signatures, and counts none for them", async () => {
    const { cluster, web3, post } = await setUpRunning(alpenglow());
    const { signature } = land(cluster, cluster.latestBlockhash());
    const slot = cluster.statusOf(signature)?.slot ?? 0;
    await vi.waitFor(async () => {
      expect(await web3.getSlot("confirmed")).toBeGreaterThan(slot + 2);
    }, WAIT);
    const detail = { transactionDetails: "signatures", rewards: false };
    const blocks = await resultsOf(post, [
      ["getBlock", slot, detail],
      ["getBlock", slot + 1, detail],
    ]);
    const holdsIt = expect.arrayContaining([signature]);
    expect(blocks).toMatchObject([{ signatures: holdsIt }, { signatures: [] }]);
    const { transactionCount } = await web3.getEpochInfo("confirmed");
    const after = cluster.currentSlot();
    await vi.waitFor(() => expect(cluster.currentSlot()).toBeGreaterThan(after + 2), WAIT);
    expect((await web3.getEpochInfo("confirmed")).transactionCount).toBe(transactionCount);
  });

  it("returns the certificate of the genesis block once the cluster has migrated", async () => {
    const migration = { afterSlots: 20, voteOnlySlots: 10 };
    const { cluster, post } = await setUpRunning(alpenglow({ migration }));
    const genesisSlot = cluster.currentSlot() + 19;
    expect(await resultsOf(post, [["getAgGenesisCert"]])).toEqual([null]);
    await vi.waitFor(() => expect(cluster.counters.migrations).toBe(1), WAIT);
    await vi.waitFor(async () => {
      const [certificate] = await resultsOf(post, [["getAgGenesisCert"]]);
      expect(certificate).toMatchObject({ block: { slot: genesisSlot } });
    }, WAIT);
  });
});
