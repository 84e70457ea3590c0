/**
 * The certificate of the ingest service and of MQTT, from files.
 *
 * Law: `look` brings a certificate that was renewed in place to new connections. One that can't be read, or does not fit its
 * key, changes nothing: the one before goes on.
 */
import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import { errorMessage } from '#lib/error-message.ts'
import type { Logger } from '#lib/telemetry.ts'
import { ingestLimits } from './limits.ts'

export type CertificateOptions = {
  readonly certificateFile: string
  readonly keyFile: string
  readonly logger: Logger
}

export type TlsOptions = {
  readonly cert: Buffer
  readonly key: Buffer
  readonly minVersion: 'TLSv1.2'
  /** For the client to finish its handshake. */
  readonly handshakeTimeout: number
}

export class Certificate {
  readonly #files: CertificateOptions
  readonly #subscribers: ((options: TlsOptions) => void)[] = []
  #options: TlsOptions

  private constructor(files: CertificateOptions, options: TlsOptions) {
    this.#files = files
    this.#options = options
  }

  /** Throws an error that names the file. */
  static async read(files: CertificateOptions): Promise<Certificate> {
    return new Certificate(files, await read(files))
  }

  get options(): TlsOptions {
    return this.#options
  }

  subscribe(onChange: (options: TlsOptions) => void): void {
    this.#subscribers.push(onChange)
  }

  /** Reads the files again. Throws where they are no good. */
  async look(): Promise<void> {
    const options = await read(this.#files)
    if (options.cert.equals(this.#options.cert) && options.key.equals(this.#options.key)) return
    this.#options = options
    for (const onChange of this.#subscribers) onChange(options)
    this.#files.logger.info('a new TLS certificate is served')
  }
}

async function read({ certificateFile, keyFile }: CertificateOptions): Promise<TlsOptions> {
  const file = async (name: string, path: string) => {
    try {
      return await readFile(path)
    } catch (cause) {
      throw new Error(`${name}: ${path} can't be read (${errorMessage(cause)})`, { cause })
    }
  }
  const [cert, key] = await Promise.all([
    file('INLET_TLS_CERTIFICATE_FILE', certificateFile),
    file('INLET_TLS_KEY_FILE', keyFile),
  ])
  try {
    createSecureContext({ cert, key })
  } catch (cause) {
    throw new Error(
      `INLET_TLS_CERTIFICATE_FILE and INLET_TLS_KEY_FILE are no certificate and its key in PEM (${errorMessage(cause)})`,
      { cause },
    )
  }
  return { cert, key, minVersion: 'TLSv1.2', handshakeTimeout: ingestLimits.handshakeTimeoutMs }
}
