/**
 * The TLS certificate of HTTP and MQTT, read from files.
 *
 * Law: a certificate that is renewed in place is served to new connections. While the files cannot be read, or do not match each
 * other, the previous certificate is still served.
 */
import { readFile } from 'node:fs/promises'
import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { loadTls } from '#lib/http.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { UserError } from '#lib/user-error.ts'
import { ingestLimits } from './limits.ts'

export type CertificateOptions = {
  readonly certificateFile: string
  readonly keyFile: string
  readonly clock: Clock
  readonly logger: Logger
}

export type TlsOptions = {
  readonly cert: Buffer
  readonly key: Buffer
  readonly minVersion: 'TLSv1.2'
  /** Time for the client to finish its handshake. */
  readonly handshakeTimeout: number
}

export class Certificate implements Service {
  readonly name = 'certificate'
  readonly #files: CertificateOptions
  readonly #subscribers: ((options: TlsOptions) => void)[] = []
  readonly #polls: Periodic
  #options: TlsOptions

  private constructor(files: CertificateOptions, options: TlsOptions) {
    this.#files = files
    this.#options = options
    this.#polls = new Periodic({
      name: 'certificate poll',
      intervalMs: ingestLimits.certificatePollMs,
      run: () => this.refresh(),
      failure: 'TLS certificate refresh failed, previous certificate still served',
      clock: files.clock,
      logger: files.logger,
    })
  }

  /** Returns undefined if no files are configured. Throws an error that names the file. */
  static async open({
    certificateFile,
    keyFile,
    ...rest
  }: Omit<CertificateOptions, 'certificateFile' | 'keyFile'> & {
    readonly certificateFile: string | null
    readonly keyFile: string | null
  }): Promise<Certificate | undefined> {
    if (certificateFile === null || keyFile === null) return undefined
    const files = { certificateFile, keyFile, ...rest }
    return new Certificate(files, await read(files))
  }

  get options(): TlsOptions {
    return this.#options
  }

  subscribe(onChange: (options: TlsOptions) => void): void {
    this.#subscribers.push(onChange)
  }

  start(): Promise<void> {
    return this.#polls.start()
  }

  stop(): Promise<void> {
    return this.#polls.stop()
  }

  /** Reads the files again. Throws if they are not valid. */
  async refresh(): Promise<void> {
    const options = await read(this.#files)
    if (options.cert.equals(this.#options.cert) && options.key.equals(this.#options.key)) return
    this.#options = options
    for (const onChange of this.#subscribers) onChange(options)
    this.#files.logger.info('TLS certificate renewed')
  }
}

async function read({ certificateFile, keyFile }: CertificateOptions): Promise<TlsOptions> {
  const [cert, key] = await Promise.all([
    readNamed('INLET_TLS_CERTIFICATE_FILE', certificateFile),
    readNamed('INLET_TLS_KEY_FILE', keyFile),
  ])
  try {
    loadTls().createSecureContext({ cert, key })
  } catch (cause) {
    throw new UserError(
      `INLET_TLS_CERTIFICATE_FILE and INLET_TLS_KEY_FILE must be a certificate and its key in PEM (${errorMessage(cause)})`,
      { cause },
    )
  }
  return { cert, key, minVersion: 'TLSv1.2', handshakeTimeout: ingestLimits.handshakeTimeoutMs }
}

async function readNamed(variable: string, path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (cause) {
    throw new UserError(`${variable}: cannot read ${path} (${errorMessage(cause)})`, { cause })
  }
}
