/**
 * The accounts that a tip may be paid to. A transaction can never write to the network's reserved
 * accounts, which are its built-in programs and sysvars: a runtime demotes them to read-only, so
 * every tip to one would fail where the transaction runs, after the edge accepted it.
 */

import { accounts, type Kind, problem } from "./value-types.ts";

/** As `accounts`, without the reserved ones. */
export function tipAccounts(countMax: number): Kind<readonly string[]> {
  const kind = accounts(countMax);
  return {
    ...kind,
    bounds: `${kind.bounds}, none of them a program or sysvar of the network`,
    read(raw, directory) {
      const reading = kind.read(raw, directory);
      if (reading.kind === "problem") return reading;
      const reserved = reading.value.find((account) => RESERVED_ACCOUNTS.has(account));
      if (reserved === undefined) return reading;
      const which = reserved === SYSTEM_PROGRAM ? " (the System Program)" : "";
      return problem(
        `must be accounts that can receive lamports, ${reserved}${which} is a program or sysvar ` +
          "of the network, and no transaction can write to it",
      );
    },
  };
}

const SYSTEM_PROGRAM = "11111111111111111111111111111111";

/** Agave `reserved-account-keys/src/lib.rs`, active and inactive ones, 2026-11. */
export const RESERVED_ACCOUNTS: ReadonlySet<string> = new Set([
  SYSTEM_PROGRAM,
  "AddressLookupTab1e1111111111111111111111111",
  "BPFLoader1111111111111111111111111111111111",
  "BPFLoader2111111111111111111111111111111111",
  "BPFLoaderUpgradeab1e11111111111111111111111",
  "ComputeBudget111111111111111111111111111111",
  "Config1111111111111111111111111111111111111",
  "Ed25519SigVerify111111111111111111111111111",
  "Feature111111111111111111111111111111111111",
  "KeccakSecp256k11111111111111111111111111111",
  "LoaderV411111111111111111111111111111111111",
  "NativeLoader1111111111111111111111111111111",
  "Secp256r1SigVerify1111111111111111111111111",
  "Stake11111111111111111111111111111111111111",
  "StakeConfig11111111111111111111111111111111",
  "Sysvar1111111111111111111111111111111111111",
  "Sysvar1nstructions1111111111111111111111111",
  "SysvarC1ock11111111111111111111111111111111",
  "SysvarEpochRewards1111111111111111111111111",
  "SysvarEpochSchedu1e111111111111111111111111",
  "SysvarFees111111111111111111111111111111111",
  "SysvarLastRestartS1ot1111111111111111111111",
  "SysvarRecentB1ockHashes11111111111111111111",
  "SysvarRent111111111111111111111111111111111",
  "SysvarRewards111111111111111111111111111111",
  "SysvarS1otHashes111111111111111111111111111",
  "SysvarS1otHistory11111111111111111111111111",
  "SysvarStakeHistory1111111111111111111111111",
  "Vote111111111111111111111111111111111111111",
  "ZkE1Gama1Proof11111111111111111111111111111",
  "ZkTokenProof1111111111111111111111111111111",
]);
