/** Tuning of the checks of DNS and certificates. */
export const checkLimits = {
  /** How often the leader looks for names and addresses that are due. */
  tickMs: 1_000,
  /** A round of look-ups begins so long after the one before. An address that had a handshake less long ago is not due. */
  dueMs: 4_000,
  /** Handshakes in one tick. */
  handshakesMax: 50,
  /** Ticks of a round of look-ups, unless a setting allows fewer names in a tick; names of a tick if there are not more. */
  roundTicks: 4,
  namesMin: 200,
  /** Names in one tick if no setting says otherwise, and where queries are billed. */
  namesMax: 2_500,
  billedNamesMax: 200,
  /** Names in one tick that were never served. */
  unservedMax: 200,
  /** Names that are looked up at the same time: a name server drops a burst, and a repeated question costs a second. */
  namesInFlight: 64,
  /** Unchanged results are recorded this often. */
  recordedMs: 60_000,
  /** Time for each attempt at a handshake: where packets get lost, some take seconds. */
  handshakeTimeoutsMs: [1_000, 1_000, 3_000],
  /** Characters of the names in a certificate. They are read again for the status of each endpoint. */
  certificateNamesCharsMax: 16_384,
  /** Addresses of one node, each with a port, that are looked at. */
  nodeAddressesMax: 64,
  /** Name servers of a zone that are asked. */
  serversMax: 8,
  /** How long the name servers of a zone are remembered. */
  serversKeptMs: 60_000,
  /** Time until they are looked for again after that failed. */
  serversRetryMs: 4_000,
  /** Time for one attempt at a look-up, and attempts. */
  lookUpTimeoutMs: 800,
  lookUpAttempts: 2,
  /** A name server that did not respond to so many look-ups in a row is asked one name at a time until it responds. */
  timeoutsMax: 8,
} as const

/** A check that is older than this says nothing about now. */
export const checkStaleSeconds = 120
/** A certificate is about to expire in the last part of its life, but at most so long before the end. */
export const expiryNoticeSecondsMax = 14 * 86_400
export const expiryNoticePart = 1 / 6
