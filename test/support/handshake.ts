/** TLS handshakes of a client that checks the certificate, unless the test says otherwise. */
import { once } from 'node:events'
import { type ConnectionOptions, connect } from 'node:tls'

export type Handshake = {
  readonly protocol: string | null
  /** Names in the certificate. */
  readonly names: string
  readonly serial: string
}

/** Rejects if there is no handshake, or the certificate is not valid for `servername`. */
export async function handshake(port: number, options: ConnectionOptions = {}): Promise<Handshake> {
  const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ...options })
  try {
    await once(socket, 'secureConnect')
    const { subjectaltname = '', serialNumber } = socket.getPeerCertificate()
    return { protocol: socket.getProtocol(), names: subjectaltname, serial: serialNumber }
  } finally {
    socket.destroy()
  }
}

export const portOf = (url: string): number => Number(new URL(url).port)
