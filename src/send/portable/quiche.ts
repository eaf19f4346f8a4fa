/**
 * The only import of @matrixai/quic: its binding to quiche 0.18, without the library around it.
 *
 * The library's stream objects cost milliseconds at p99, so the sender and the simulated leader use
 * the binding directly over their own UDP sockets. Every call of the binding may throw; the caller
 * catches. The quiche inside is of 2023 and lacks later fixes, so connections are bounded,
 * including the bytes that leaders send, and recycled.
 *
 * Decision: docs/decisions/0034-portable-engine-uses-the-binding.md
 */

import quiche from "@matrixai/quic/native/quiche.js";
import type { Config, Connection, Header, Host, RecvInfo } from "@matrixai/quic/native/types.js";

export type {
  Config as QuicheConfig,
  Connection as QuicheConnection,
  Header as QuicheHeader,
  Host as QuicheHost,
  RecvInfo as QuicheRecvInfo,
};
export { quiche };

/** ALPN of a leader's transaction port. Agave `ALPN_TPU_PROTOCOL_ID`, 4.3, 2026-11. */
const ALPN = "solana-tpu";

/**
 * Signature algorithms of both sides' certificates, as BoringSSL names them. Validators present
 * Ed25519, which BoringSSL offers only when configured; the others are for relays.
 */
const SIGNATURE_ALGORITHMS = "ed25519:ecdsa_secp256r1_sha256:rsa_pss_rsae_sha256";

export interface TlsIdentity {
  /** PEM of the certificate. */
  readonly certificate: string;
  /** PEM of its private key, PKCS#8. */
  readonly key: string;
}

/**
 * A configuration with the local certificate and ALPN. With `demandCertificate` the other side must
 * present a certificate. Chain and name are never verified: validators self-sign their
 * certificates, and the key need not be the leader's identity (Firedancer generates a random one,
 * relays use their own), so there is nothing to verify against. TLS 1.3 always checks that the
 * other side holds the key of its certificate.
 *
 * @throws Error when the PEM texts cannot be read
 */
export function quicheConfig(tls: TlsIdentity, demandCertificate: boolean): Config {
  const text = new TextEncoder();
  const config = quiche.Config.withBoringSslCtx(
    demandCertificate,
    demandCertificate,
    null,
    [text.encode(tls.key)],
    [text.encode(tls.certificate)],
    SIGNATURE_ALGORITHMS,
  );
  config.setApplicationProtos([ALPN]);
  config.grease(false);
  config.enablePacing(false);
  config.setDisableActiveMigration(true);
  return config;
}
