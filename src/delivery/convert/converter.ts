/**
 * Stage 2 of a delivery: reads the facts of a segment, and converts it.
 *
 * Owns: what all conversions share. Does not own: one conversion (conversion.ts), how it is repeated (repeat-attempts.ts), and what its
 * failures mean (policy.ts).
 */
import { commitId } from '#model/commit.ts'
import type { DeliveryRun, SegmentFacts } from '../segments/delivery-run.ts'
import { readFacts } from '../segments/read-facts.ts'
import { carryOut } from './carry-out.ts'
import { Conversion, type ConversionOptions, ownerOf } from './conversion.ts'
import { examineSegment } from './examination.ts'
import { ExpensiveViews } from './expensive-views.ts'
import { HeldLogs } from './held-logs.ts'
import { repeatAttempts } from './repeat-attempts.ts'
import type { BuiltArtifacts } from './segment-build.ts'
import { ShadowRests } from './shadow-rests.ts'

export type ConverterOptions = Omit<ConversionOptions, 'expensive' | 'rests' | 'held'>

export class Converter {
  readonly #options: ConversionOptions

  constructor(options: ConverterOptions) {
    this.#options = { ...options, expensive: new ExpensiveViews(), rests: new ShadowRests(), held: new HeldLogs(options) }
  }

  /** Throws DeliveryEnded or the signal's reason. */
  readFacts(run: DeliveryRun): Promise<SegmentFacts> {
    const { nodeId, endpoints, builds, runner } = this.#options
    const { segment, signal } = run
    const id = commitId(nodeId, segment.incarnation, segment.seq)
    const probe = () => builds.run(ownerOf(run, endpoints), { signal }, (signal) => runner.probe(signal))
    let updated = endpoints.nextUpdate()
    return repeatAttempts({
      attempt: async () => {
        updated = endpoints.nextUpdate()
        try {
          const result = await readFacts(this.#options, segment)
          run.report(null)
          return { kind: 'done', result }
        } catch (error) {
          signal.throwIfAborted()
          const outcome = await examineSegment(error, { ...this.#options, segment, id, probe })
          signal.throwIfAborted()
          return outcome
        }
      },
      carryOut: (verdict, outcome) => carryOut(this.#options, verdict, outcome, { id, run, updated }),
    })
  }

  /** The caller removes the files. Throws DeliveryEnded or the signal's reason. */
  convert(facts: SegmentFacts, run: DeliveryRun): Promise<BuiltArtifacts> {
    return repeatAttempts(new Conversion(this.#options, facts, run))
  }
}
