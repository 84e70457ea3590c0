import { connect } from 'node:net'
import type { ListenAddress } from '#lib/option-types.ts'

/** Sends one DNS message over TCP and returns the response. Throws if the server cannot be reached or closes the connection early. */
export async function exchange({ host, port }: ListenAddress, message: Buffer, signal: AbortSignal): Promise<Buffer> {
  signal.throwIfAborted()
  const socket = connect({ host, port, signal })
  const length = Buffer.alloc(2)
  length.writeUInt16BE(message.length)
  try {
    socket.write(Buffer.concat([length, message]))
    let received = Buffer.alloc(0)
    for await (const chunk of socket) {
      received = Buffer.concat([received, chunk as Buffer])
      const end = received.length < 2 ? Number.POSITIVE_INFINITY : 2 + received.readUInt16BE(0)
      if (received.length >= end) return received.subarray(2, end)
    }
  } finally {
    socket.destroy()
  }
  throw new Error('the connection was closed before the response')
}
