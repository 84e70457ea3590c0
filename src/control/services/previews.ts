import { AppError } from '#errors.ts'
import type { Principal } from '#model/api-key.ts'
import { previewLimits } from '#model/limits.ts'
import type { DefinedPreview, PreviewRequest, PreviewResult } from '#model/preview.ts'
import { withDefinition } from './definitions.ts'

/** Request bodies held in memory at once, for all accounts together. */
const IN_FLIGHT_MAX = 32

/** Provided by the composition: `preview/preview-workers.ts`. */
export type PreviewRunner = {
  readonly run: (request: DefinedPreview, account: string, signal: AbortSignal) => Promise<PreviewResult>
}

/** Runs definitions on samples. Law: one account cannot use more than its share of the workers. */
export class Previews {
  readonly #runner: PreviewRunner
  readonly #inFlight = new Map<string, number>()
  #total = 0

  constructor({ runner }: { readonly runner: PreviewRunner }) {
    this.#runner = runner
  }

  /**
   * Reserves a slot. Call it before the body is read, and call the returned function when the request ends.
   * Throws too_many_requests and unavailable.
   */
  admit({ account_id }: Principal): () => void {
    const inFlight = this.#inFlight.get(account_id) ?? 0
    if (inFlight >= previewLimits.perAccountMax) {
      throw new AppError('too_many_requests', `an account may run at most ${previewLimits.perAccountMax} previews at once`, {
        retryAfterSeconds: 1,
      })
    }
    if (this.#total >= IN_FLIGHT_MAX) {
      throw new AppError('unavailable', 'too many previews are running: try again later', { retryAfterSeconds: 1 })
    }
    this.#total += 1
    this.#inFlight.set(account_id, inFlight + 1)
    return () => {
      this.#total -= 1
      const left = (this.#inFlight.get(account_id) ?? 1) - 1
      if (left === 0) this.#inFlight.delete(account_id)
      else this.#inFlight.set(account_id, left)
    }
  }

  preview(
    { account_id }: Principal,
    { definition: given, format, samples }: PreviewRequest,
    signal: AbortSignal,
  ): Promise<PreviewResult> {
    return withDefinition(given, format, (definition) => this.#runner.run({ definition, samples }, account_id, signal))
  }
}
