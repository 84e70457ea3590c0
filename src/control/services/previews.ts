import { AppError } from '#errors.ts'
import type { Principal } from '#model/api-key.ts'
import { previewLimits } from '#model/limits.ts'
import type { DefinedPreview, PreviewRequest, PreviewResult } from '#model/preview.ts'
import { withDefinition } from './definitions.ts'

/** Declared here, given by the composition: `views/preview-workers.ts`. */
export type PreviewRunner = { readonly run: (request: DefinedPreview, signal: AbortSignal) => Promise<PreviewResult> }

/** Trying a definition on samples. Law: no account keeps the others waiting with more than its share. */
export class Previews {
  readonly #runner: PreviewRunner
  readonly #inFlight = new Map<string, number>()

  constructor({ runner }: { readonly runner: PreviewRunner }) {
    this.#runner = runner
  }

  async preview({ account_id }: Principal, request: PreviewRequest, signal: AbortSignal): Promise<PreviewResult> {
    const inFlight = this.#inFlight.get(account_id) ?? 0
    if (inFlight >= previewLimits.perAccountMax) {
      throw new AppError('too_many_requests', `an account runs ${previewLimits.perAccountMax} previews at once at most`, {
        retryAfterSeconds: 1,
      })
    }
    this.#inFlight.set(account_id, inFlight + 1)
    try {
      const { definition, format, samples } = request
      return await withDefinition(definition, format, (read) => this.#runner.run({ definition: read, samples }, signal))
    } finally {
      const left = (this.#inFlight.get(account_id) ?? 1) - 1
      if (left === 0) this.#inFlight.delete(account_id)
      else this.#inFlight.set(account_id, left)
    }
  }
}
