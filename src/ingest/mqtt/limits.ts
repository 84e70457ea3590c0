/** Tuning of MQTT connections. Bounds that clients are promised are in `model/limits.ts`. */
import { KiB, MiB } from '#lib/bytes.ts'

export const sessionLimits = {
  /** Time for CONNECT to arrive. */
  connectTimeoutMs: 5_000,
  /** Bytes of messages of a connection that are not yet durable. Above this, reading pauses. */
  inFlightBytesMax: 4 * MiB,
  /** Packets that are read from one connection before others are read. */
  packetsPerTurnMax: 4_096,
  /** Bytes of an incomplete packet that a connection may hold before they count as bytes in flight. Until then they count as unread. */
  heldBytesFree: 64 * KiB,
  /** Bytes to the client that it has not read. Above this, reading pauses; after `unsentMsMax` the connection is closed. */
  unsentBytesMax: 64 * KiB,
  unsentMsMax: 30_000,
  /** How often connections are checked for deadlines. */
  sweepMs: 1_000,
  /** How often memory and disk are checked again while there is no room. */
  roomPollMs: 20,
  /** How often some connections are ended when the node leaves. */
  endTurnMs: 100,
  /** Share of the shutdown time that messages in flight get to become durable. */
  drainMs: 5_000,
  /** At most one log line per reason in this time. */
  clientErrorLogMs: 60_000,
  /** Characters of each client-supplied text in such a line. */
  clientErrorLogCharsMax: 512,
  /** User names with a counter of their own. */
  usernamesMax: 200,
} as const
