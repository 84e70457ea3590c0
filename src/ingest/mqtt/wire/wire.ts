import type { Buffer } from 'node:buffer'

/** A connection that carries MQTT: TCP, TLS or WebSocket. */
export interface Wire {
  /** Address of the client, or of the proxy in front of it. */
  readonly address: string | undefined
  /** `X-Forwarded-For` of the handshake of a WebSocket. */
  readonly forwardedFor?: string | undefined
  /** Bytes that were written and not yet read by the client. */
  readonly unsentBytes: number
  write(bytes: Buffer): void
  /** Stops reading until `resume`. Meanwhile the end of the connection is not noticed either. */
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
  /** Called if the bytes cannot contain MQTT. */
  broken(message: string): void
  /** Called when the client has read all unsent bytes. */
  drained(): void
  /** Called once, whichever side closed. */
  closed(): void
}
