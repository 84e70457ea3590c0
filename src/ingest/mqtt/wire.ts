import type { Buffer } from 'node:buffer'

/** A connection that carries MQTT: TCP, TLS or WebSocket. */
export interface Wire {
  /** Address of the client, or of the proxy in front of it. */
  readonly address: string | undefined
  /** Bytes that were written and that the client has not read. */
  readonly unsentBytes: number
  /** Bytes of an incomplete WebSocket message, which the reader has not received. */
  readonly heldBytes: number
  write(bytes: Buffer): void
  /** Reads nothing more until `resume`. Meanwhile, the end of the connection goes unnoticed too. */
  pause(): void
  resume(): void
  /** Closes once everything written is sent, or after a while. Bytes that still arrive are discarded. */
  end(): void
  /** Closes at once. */
  destroy(): void
}

/** Receives the events of a wire. */
export interface WireReader {
  receive(chunk: Buffer): void
  /** `heldBytes` has grown. */
  accountHeldBytes(): void
  /** The bytes cannot carry MQTT. */
  broken(message: string): void
  /** The client has read everything that was unsent. */
  drained(): void
  /** Called once, whoever closed. */
  closed(): void
}
