/**
 * The TLS certificate that listeners serve. It may change while they run.
 *
 * Law: new connections get the new certificate, and open ones are not touched. A certificate whose key does not fit never replaces one.
 */
import { X509Certificate } from 'node:crypto'
import { loadTls } from './http.ts'

const handshakeTimeoutMs = 5_000

export type TlsOptions = {
  /** Missing until there is a certificate: every handshake fails then. */
  readonly cert?: Buffer
  readonly key?: Buffer
  readonly minVersion: 'TLSv1.2'
  /** Time for the client to finish its handshake. */
  readonly handshakeTimeout: number
}

export class ServedCertificate {
  #options: TlsOptions = { minVersion: 'TLSv1.2', handshakeTimeout: handshakeTimeoutMs }
  #expiresAtMs: number | undefined
  readonly #subscribers: ((options: TlsOptions) => void)[] = []

  get options(): TlsOptions {
    return this.#options
  }

  /** When it ends (epoch ms); undefined until there is a certificate. */
  get expiresAtMs(): number | undefined {
    return this.#expiresAtMs
  }

  subscribe(onChange: (options: TlsOptions) => void): void {
    this.#subscribers.push(onChange)
  }

  /** Returns whether it differs from the previous one. Throws if it is not a certificate and its key in PEM. */
  protected replace(cert: Buffer, key: Buffer): boolean {
    if (this.#options.cert?.equals(cert) && this.#options.key?.equals(key)) return false
    loadTls().createSecureContext({ cert, key })
    this.#options = { ...this.#options, cert, key }
    this.#expiresAtMs = Date.parse(new X509Certificate(cert).validTo)
    for (const onChange of this.#subscribers) onChange(this.#options)
    return true
  }
}
