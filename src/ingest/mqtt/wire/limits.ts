/** Tuning of the connections that carry MQTT. */
import { MiB } from '#lib/bytes.ts'

export const wireLimits = {
  /** Size of a WebSocket message, which may hold parts of packets or several packets, and the number of its fragments. */
  frameBytesMax: 2 * MiB,
  frameFragmentsMax: 4_096,
  /** WebSocket pongs that the client has not read. */
  pongsMax: 60,
  /** How long a closing connection waits for the client to close too. */
  closeMs: 2_000,
} as const
