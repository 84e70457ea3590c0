/** Tuning that the protocols share. Bounds that clients are promised are in `model/limits.ts`. */
export const ingestLimits = {
  /** How often the certificate files are checked for changes. */
  certificatePollMs: 60_000,
  handshakeTimeoutMs: 10_000,
  /** How often free disk space and the health of the WAL are checked. */
  admissionPollMs: 1_000,
  /** Connections that the kernel keeps waiting to be accepted. */
  listenBacklog: 4_096,
} as const
