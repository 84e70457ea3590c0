import type { Buffer } from 'node:buffer'

/** A connection that carries MQTT, whatever it is made of. */
export interface Wire {
  /** Bytes that were written and that the client has not taken. */
  readonly unsentBytes: number
  write(bytes: Buffer): void
  /** Reads nothing more until `resume`. */
  pause(): void
  resume(): void
  /** Closes once everything that was written is out, or after a while. */
  end(): void
  /** Closes at once. */
  destroy(): void
}

/** What a wire tells whoever reads it. */
export interface WireReader {
  receive(chunk: Buffer): void
  /** The client took what was unsent. */
  drained(): void
  /** Once, however it came to be. */
  closed(): void
}
