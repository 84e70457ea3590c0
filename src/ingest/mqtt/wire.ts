import type { Buffer } from 'node:buffer'

/** A connection that carries MQTT, whatever it is made of. */
export interface Wire {
  /** Of the client, or of the proxy before it. */
  readonly address: string | undefined
  /** Bytes that were written and that the client has not taken. */
  readonly unsentBytes: number
  /** Bytes that came and that the reader has not got, since they are not whole to the wire. */
  readonly heldBytes: number
  write(bytes: Buffer): void
  /** Reads nothing more until `resume`. Then also an end of the connection goes unnoticed. */
  pause(): void
  resume(): void
  /** Closes once everything that was written is out, or after a while. What still comes is thrown away. */
  end(): void
  /** Closes at once. */
  destroy(): void
}

/** What a wire tells whoever reads it. */
export interface WireReader {
  receive(chunk: Buffer): void
  /** `heldBytes` has grown. */
  holds(): void
  /** What comes can't carry MQTT. */
  broken(message: string): void
  /** The client took what was unsent. */
  drained(): void
  /** Once, however it came to be. */
  closed(): void
}
