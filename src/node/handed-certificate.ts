/**
 * The certificate that control issues for the region of this node.
 *
 * Owns: fetching it when its fingerprint changes, and the copy on disk. Does not own: when there is another one (the snapshot says so).
 * Law: a certificate is stored before it is served, if the disk allows, so a start without control serves the newest one. Chain and key are
 * one file: a stop between two would leave a key that does not fit.
 */
import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { type Files, writeDurably } from '#lib/files.ts'
import { fingerprintOf } from '#lib/fingerprint.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Random } from '#lib/random.ts'
import { ServedCertificate } from '#lib/served-certificate.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Control } from './control-client.ts'

/** How often a failed fetch is repeated. */
const fetchMsMin = 1_000
const fetchMsMax = 30_000

const keyBlock = /-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*-----END [A-Z ]*PRIVATE KEY-----\n?/

export type HandedCertificateOptions = {
  readonly control: Pick<Control, 'fetchCertificate'>
  readonly path: string
  readonly files: Files
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

export class HandedCertificate extends ServedCertificate implements Service {
  readonly name = 'handed certificate'
  readonly #options: HandedCertificateOptions
  readonly #fetches: Periodic
  #wanted: string | null = null
  #fingerprint: string | undefined

  constructor(options: HandedCertificateOptions) {
    super()
    this.#options = options
    const { clock, random, logger } = options
    this.#fetches = new Periodic({
      name: this.name,
      intervalMs: fetchMsMin,
      run: (signal) => this.#fetch(signal),
      runAtStart: true,
      failureDelay: { msMax: fetchMsMax, random },
      failure: 'certificate not fetched from control; the previous one is still served',
      recovery: 'certificate fetched from control again',
      level: 'warn',
      clock,
      logger,
    })
  }

  /** Serves the stored copy. Does not wait for control. */
  async start(): Promise<void> {
    await this.#load()
    await this.#fetches.start()
  }

  stop(): Promise<void> {
    return this.#fetches.stop()
  }

  /** Null keeps the present one: control issues none, or has none yet. */
  want(fingerprint: string | null): void {
    this.#wanted = fingerprint
    this.#fetches.runNow()
  }

  notReadyReasons(): readonly string[] {
    return this.options.cert === undefined ? ['no TLS certificate yet: this node waits for the one that control issues'] : []
  }

  async #fetch(signal: AbortSignal): Promise<void> {
    const { control, path, files, logger } = this.#options
    if (this.#wanted === null || this.#wanted === this.#fingerprint) return
    const { chain, key } = await control.fetchCertificate(signal)
    try {
      await writeDurably(files, path, Buffer.from(`${chain.trimEnd()}\n${key}`))
    } catch (error) {
      logger.warn({ path, reason: errorMessage(error) }, 'certificate not stored; the next start has to fetch it again')
    }
    this.#serve(chain, key)
    logger.info({ fingerprint: this.#fingerprint }, 'TLS certificate renewed')
  }

  async #load(): Promise<void> {
    const { path, files, logger } = this.#options
    try {
      const pem = Buffer.from((await files.read(path)) ?? '').toString()
      const [key] = keyBlock.exec(pem) ?? []
      if (key !== undefined) this.#serve(pem.replace(key, ''), key)
    } catch (error) {
      logger.error({ path, reason: errorMessage(error) }, 'stored certificate cannot be used; waiting for control')
    }
  }

  #serve(chain: string, key: string): void {
    this.replace(Buffer.from(chain), Buffer.from(key))
    this.#fingerprint = fingerprintOf(chain)
  }
}
