/**
 * The TLS certificate of a listener, read from files.
 *
 * Law: a certificate that is renewed in place is served to new connections. While the files cannot be read, or do not match each
 * other, the previous certificate is still served.
 */
import { readFile } from 'node:fs/promises'
import type { Clock } from './clock.ts'
import { errorMessage } from './error-message.ts'
import { Periodic } from './periodic.ts'
import { ServedCertificate } from './served-certificate.ts'
import type { Service } from './service.ts'
import type { Logger } from './telemetry.ts'
import { UserError } from './user-error.ts'

/** How often the files are checked for changes. */
const pollMs = 60_000

export type CertificateOptions = {
  /** How the names of the settings of both files begin. */
  readonly setting: string
  readonly certificateFile: string
  readonly keyFile: string
  readonly clock: Clock
  readonly logger: Logger
}

export class Certificate extends ServedCertificate implements Service {
  readonly name = 'certificate'
  readonly #files: CertificateOptions
  readonly #polls: Periodic

  private constructor(files: CertificateOptions) {
    super()
    this.#files = files
    this.#polls = new Periodic({
      name: 'certificate poll',
      intervalMs: pollMs,
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
    const certificate = new Certificate({ certificateFile, keyFile, ...rest })
    await certificate.#read()
    return certificate
  }

  start(): Promise<void> {
    return this.#polls.start()
  }

  stop(): Promise<void> {
    return this.#polls.stop()
  }

  /** Reads the files again. Throws if they are not valid. */
  async refresh(): Promise<void> {
    if (await this.#read()) this.#files.logger.info('TLS certificate renewed')
  }

  async #read(): Promise<boolean> {
    const { setting, certificateFile, keyFile } = this.#files
    const [cert, key] = await Promise.all([
      readNamed(`${setting}_CERTIFICATE_FILE`, certificateFile),
      readNamed(`${setting}_KEY_FILE`, keyFile),
    ])
    try {
      return this.replace(cert, key)
    } catch (cause) {
      throw new UserError(
        `${setting}_CERTIFICATE_FILE and ${setting}_KEY_FILE must be a certificate and its key in PEM (${errorMessage(cause)})`,
        { cause },
      )
    }
  }
}

/** Throws UserError, which names the setting. */
export async function readNamed(variable: string, path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (cause) {
    throw new UserError(`${variable}: cannot read ${path} (${errorMessage(cause)})`, { cause })
  }
}
