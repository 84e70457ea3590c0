/**
 * A process that reads, compiles and tries out definitions, one at a time, for its parent process.
 *
 * DuckDB handles an interrupt between batches of rows, not within one: a regular expression on a few large samples can run for a
 * minute. Parsing and checking a body handles none at all. Only a process can be killed at any time.
 */
import { AppError } from '#errors.ts'
import { systemClock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { serveTasks } from '#lib/serve-tasks.ts'
import type { Definition, DefinitionFormat, DefinitionInput } from '#model/definition.ts'
import { comparisonLimits } from '#model/limits.ts'
import { PreviewRequest as PreviewBody } from '#model/preview.ts'
import { parseJsonBody, requireValid } from '#model/request-body.ts'
import { SuggestRequest } from '#model/suggestion.ts'
import { ChangeView, CreateView } from '#model/view.ts'
import { CompareView } from '#model/view-comparison.ts'
import { compileView } from '#views/compile.ts'
import { compareStored } from './compare-stored.ts'
import { type LocatedWarning, withDefinition } from './definitions.ts'
import { samplesOfParquet } from './parquet-samples.ts'
import { previewView } from './preview.ts'
import type {
  CheckedDefinition,
  PreviewReply,
  PreviewReport,
  PreviewRequest,
  PreviewTask,
  ReadComparison,
} from './preview-protocol.ts'
import { withNames } from './preview-report.ts'
import { UnreadableFile } from './stored-batches.ts'
import { countDlqReasons, readDlqRows, readRawRows } from './stored-rows.ts'
import { suggestView } from './suggest.ts'

/** Other processes on the machine have priority. */
const niceness = 10

serveTasks<PreviewTask, PreviewReply, PreviewReport>(reply, { niceness })

async function reply({ request, timeoutMs }: PreviewTask, report: (report: PreviewReport) => void): Promise<PreviewReply> {
  try {
    return await replyTo(request, timeoutMs, report)
  } catch (error) {
    if (error instanceof AppError) return { rejected: { message: error.message, errors: error.errors ?? [] } }
    return { crashed: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}

async function replyTo(
  request: PreviewRequest,
  timeoutMs: number,
  report: (report: PreviewReport) => void,
): Promise<PreviewReply> {
  const options = { clock: systemClock, timeoutMs }
  if ('preview' in request) {
    const { definition, format, samples } = requireValid(PreviewBody, parseJsonBody(request.preview))
    report({ samples: samples.length })
    const tryOut = async (parsed: Definition, names: readonly LocatedWarning[]) =>
      withNames(await previewView({ definition: parsed, samples }, { ...options, secrets: request.secrets }), names)
    return toJson(await withDefinition(definition, format, tryOut))
  }
  if ('suggest' in request) {
    const { samples = [], endpoint_id } = requireValid(SuggestRequest, parseJsonBody(request.suggest))
    return endpoint_id === undefined ? toJson(await suggestView(samples, options)) : { endpointId: endpoint_id }
  }
  if ('suggestFrom' in request) return toJson(await suggestView(await samplesOfParquet(request.suggestFrom), options))
  if ('create' in request) {
    const view = requireValid(CreateView, parseJsonBody(request.create))
    return { view: { ...view, ...(await read(view.definition, view.format, request.secrets)) } }
  }
  if ('change' in request) {
    const { definition, ...change } = requireValid(ChangeView, parseJsonBody(request.change))
    if (definition === undefined) return { change: { ...change, warnings: [] } }
    return { change: { ...change, ...(await read(definition, change.format ?? request.format, request.secrets)) } }
  }
  if ('readComparison' in request)
    return { comparison: await readComparison(request.readComparison, request.format, request.secrets) }
  if ('compare' in request) {
    return compareStored(request.compare, { ...options, ...comparisonLimits }).then(toJson, (error: unknown) => {
      if (error instanceof UnreadableFile) return { unreadable: error.message }
      throw error
    })
  }
  if ('rawRows' in request) return replyRead(readRawRows(request.rawRows).then((items) => ({ items })))
  if ('dlqRows' in request) return replyRead(readDlqRows(request.dlqRows).then((items) => ({ items })))
  if ('dlqReasons' in request) return replyRead(countDlqReasons(request.dlqReasons))
  return { compiled: await read(request.compile, 'json', request.secrets) }
}

/** Parses and compiles a definition. */
function read(given: DefinitionInput, format: DefinitionFormat, known: readonly string[]): Promise<CheckedDefinition> {
  return withDefinition(given, format, async (definition, names) => {
    const { secrets } = await compileView(definition, { secrets: known, isNew: true })
    return { definition, secrets, warnings: names.map(({ name: _, ...warning }) => warning) }
  })
}

/** Without a body, the draft is compared. */
async function readComparison(
  body: Uint8Array,
  formatOfView: DefinitionFormat,
  known: readonly string[],
): Promise<ReadComparison> {
  const { definition, format, ...comparison } = requireValid(CompareView, body.length === 0 ? {} : parseJsonBody(body))
  if (definition === undefined) return comparison
  return { ...comparison, definition: (await read(definition, format ?? formatOfView, known)).definition }
}

async function replyRead(reading: Promise<object>): Promise<PreviewReply> {
  return reading.then(toJson, (error: unknown) => ({ unreadable: errorMessage(error) }))
}

function toJson(response: unknown): PreviewReply {
  return { json: Buffer.from(JSON.stringify(response)) }
}
