/**
 * The TLS certificate of a listener, read from files.
 *
 * Law: a certificate that is renewed in place is served to new connections. While the files cannot be read, or do not match each
 * other, the previous certificate is still served.
 */
import { readFile } from 'node:fs/promises'
import type { Clock } from './clock.ts'
import { errorMessage } from './error-message.ts'
import { loadTls } from './http.ts'
import { Periodic } from './periodic.ts'
import type { Service } from './service.ts'
import type { Logger } from './telemetry.ts'
import { UserError } from './user-error.ts'

const limits = {
  /** How often the files are checked for changes. */
  pollMs: 60_000,
  handshakeTimeoutMs: 5_000,
} as const

export type CertificateOptions = {
  /** How the names of the settings of both files begin. */
  readonly setting: string
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
      intervalMs: limits.pollMs,
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

async function read({ setting, certificateFile, keyFile }: CertificateOptions): Promise<TlsOptions> {
  const [cert, key] = await Promise.all([
    readNamed(`${setting}_CERTIFICATE_FILE`, certificateFile),
    readNamed(`${setting}_KEY_FILE`, keyFile),
  ])
  try {
    loadTls().createSecureContext({ cert, key })
  } catch (cause) {
    throw new UserError(
      `${setting}_CERTIFICATE_FILE and ${setting}_KEY_FILE must be a certificate and its key in PEM (${errorMessage(cause)})`,
      { cause },
    )
  }
  return { cert, key, minVersion: 'TLSv1.2', handshakeTimeout: limits.handshakeTimeoutMs }
}

/** Throws UserError, which names the setting. */
export async function readNamed(variable: string, path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (cause) {
    throw new UserError(`${variable}: cannot read ${path} (${errorMessage(cause)})`, { cause })
  }
}
