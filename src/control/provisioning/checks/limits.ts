/** Tuning of the checks of DNS and certificates. */
export const checkLimits = {
  /** How often the leader looks for names and addresses that are due. */
  tickMs: 1_000,
  /** Something that was checked less long ago is not due. */
  dueMs: 4_000,
  /** Handshakes, and names that are looked up, in one tick. */
  handshakesMax: 50,
  namesMax: 200,
  /** Names that are looked up at the same time: a name server drops a burst, and a repeated question costs a second. */
  namesInFlight: 32,
  handshakeTimeoutMs: 3_000,
  /** Addresses of one node, each with a port, that are looked at. */
  nodeAddressesMax: 64,
  /** Name servers of a zone that are asked. */
  serversMax: 8,
  /** How long the name servers of a zone are remembered. */
  serversKeptMs: 60_000,
  /** Time for one attempt at a look-up, and attempts. */
  lookUpTimeoutMs: 800,
  lookUpAttempts: 2,
  /** Endpoints that are considered for `provisioned_at` at once. */
  unprovisionedMax: 500,
  /** After that, so many times as long is nothing considered. */
  restFactor: 9,
} as const

/** A check that is older than this says nothing about now. */
export const checkStaleSeconds = 120
/** A certificate is about to expire in the last part of its life, but at most so long before the end. */
export const expiryNoticeSecondsMax = 14 * 86_400
export const expiryNoticePart = 1 / 6
