/** Reads the certificate that a TLS listener serves, as a client of this name would see it. */
import { once } from 'node:events'
import { loadTls } from '#lib/http.ts'
import { checkLimits } from './limits.ts'

export type ServedCertificate = {
  /** Alternative names, as in `DNS:*.fra.example.com`. */
  readonly names: string
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

type Place = { readonly address: string; readonly port: number }

/**
 * Makes a handshake and closes the connection. Who signed the certificate is not judged: which CAs clients trust is not known here. Throws
 * an error that says why there was no handshake. `servername` is null for a client that connects to an address.
 */
export async function readServedCertificate(
  place: Place,
  servername: string | null,
  signal: AbortSignal,
): Promise<ServedCertificate> {
  let waitedMs = 0
  for (const timeoutMs of checkLimits.handshakeTimeoutsMs) {
    const served = await handshakeWithin(timeoutMs, place, servername, signal)
    if (served !== undefined) return served
    waitedMs += timeoutMs
  }
  throw new Error(`no response within ${waitedMs / 1000} s`)
}

/** Returns undefined if there is no response in time. */
async function handshakeWithin(
  timeoutMs: number,
  { address: host, port }: Place,
  servername: string | null,
  signal: AbortSignal,
): Promise<ServedCertificate | undefined> {
  const timeout = AbortSignal.timeout(timeoutMs)
  const socket = loadTls().connect({
    host,
    port,
    ...(servername === null ? {} : { servername }),
    rejectUnauthorized: false,
    minVersion: 'TLSv1.2',
  })
  // One that is emitted after the end of the wait below changes nothing.
  socket.on('error', () => undefined)
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.any([signal, timeout]) })
    const certificate = socket.getPeerX509Certificate()
    if (certificate === undefined) throw new Error('no certificate was sent')
    const names = certificate.subjectAltName ?? ''
    const max = checkLimits.certificateNamesCharsMax
    if (names.length > max) throw new Error(`its names have ${names.length} characters, and at most ${max} are read`)
    return {
      names,
      notBeforeMs: certificate.validFromDate.getTime(),
      notAfterMs: certificate.validToDate.getTime(),
    }
  } catch (error) {
    if (timeout.aborted && !signal.aborted) return undefined
    throw error
  } finally {
    socket.destroy()
  }
}
