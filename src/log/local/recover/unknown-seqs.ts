/**
 * Logs whose high water is damaged, so that the highest seq they used is not known.
 *
 * Owns: what control is asked about them. Does not own: the highest known seq of a log (recovery.ts).
 * Law: such a log accepts no frame until control has answered. File names do not show the seqs of segments that were delivered and removed. Control
 * recorded their commits before that. It is asked after the directory was listed, so each used seq has a file or a commit.
 */
import { errorMessage } from '#lib/error-message.ts'
import type { Logger } from '#lib/telemetry.ts'
import { LogError } from '../../log-error.ts'
import type { FindCommittedSeqs } from '../../log-writer.ts'

export type UnknownSeqsOptions = {
  readonly logger: Logger
  /** Undefined if nobody knows: logs continue from their file names then. */
  readonly findCommittedSeqs: FindCommittedSeqs | undefined
  /** Called with the highest seq that control has of a log, -1 for none. The log accepts frames afterwards. */
  readonly onKnown: (logName: string, seq: number) => void
}

const reason = 'the file high-water is damaged, and which seqs were used is not known until control is reached'

export class UnknownSeqs {
  readonly #options: UnknownSeqsOptions
  readonly #logNames = new Set<string>()
  #isFailureLogged = false

  constructor(options: UnknownSeqsOptions) {
    this.#options = options
  }

  get count(): number {
    return this.#logNames.size
  }

  /** Call it once the directory of the log was listed. */
  add(logName: string): void {
    const { logger, findCommittedSeqs } = this.#options
    const next = findCommittedSeqs === undefined ? 'seq continues from file names' : 'asking control which seqs were used'
    logger.error({ log: logName }, `high-water file damaged, ${next}`)
    if (findCommittedSeqs !== undefined) this.#logNames.add(logName)
  }

  assertKnown(logName: string): void {
    if (this.#logNames.has(logName)) throw new LogError('io_error', reason)
  }

  /** Returns the reason for each log that accepts nothing. */
  blocked(): readonly (readonly [logName: string, reason: string])[] {
    return [...this.#logNames].map((logName) => [logName, `new data is refused: ${reason}`])
  }

  /** Never throws: what fails is tried again with the next call. */
  async resolve(signal: AbortSignal): Promise<void> {
    const { findCommittedSeqs, logger, onKnown } = this.#options
    // Others may be added meanwhile: the answer is not about them.
    const asked = [...this.#logNames]
    if (asked.length === 0 || findCommittedSeqs === undefined) return
    try {
      const seqs = await findCommittedSeqs(signal)
      for (const logName of asked) {
        const seq = seqs[logName] ?? -1
        onKnown(logName, seq)
        this.#logNames.delete(logName)
        logger.notice({ log: logName, seq }, 'highest committed seq known; log accepts data')
      }
      this.#isFailureLogged = false
    } catch (error) {
      if (!this.#isFailureLogged && !signal.aborted)
        logger.warn({ reason: errorMessage(error), logs: asked.length }, 'control cannot be asked which seqs were used; retrying')
      this.#isFailureLogged = true
    }
  }
}
