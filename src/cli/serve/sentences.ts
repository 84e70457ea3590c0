/** Sentences for people at a terminal, about events that need no details. */
import type { CommitEvent } from '#delivery/publish/commit-event.ts'
import type { Sentences } from '#lib/text-lines.ts'

/** Views of a commit that are named. */
const viewsNamedMax = 3

export const sentences: Sentences = {
  'data arriving': ({ log }) => `endpoint ${log} receives data`,
  'supervisor stopping': () => 'stopping; another Ctrl-C ends it at once, without loss',
  'supervisor failed to start': ({ reason }) => `${reason}`,
  'required view failed; its log waits': ({ endpoint, reason }) => `endpoint ${endpoint}: ${reason}`,
  'segment committed': (fields) => describeCommit(fields as CommitEvent),
}

/** For example `12 records → events v1, 0.8 s`. */
function describeCommit({ records, views, files, since_sealed_ms, is_adopted }: CommitEvent): string {
  const written = views.length > 0 ? nameViews(views) : files.includes('parquet') ? 'raw Parquet' : 'raw segments'
  const seconds = since_sealed_ms / 1000
  const time = is_adopted ? 'delivered before the restart' : `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`
  return `${count(records, 'record')} → ${written}, ${time}`
}

function nameViews(views: CommitEvent['views']): string {
  const named = views.slice(0, viewsNamedMax).map(({ view_name, view_version, dropped, dlq, failed }) => {
    const losses = [
      ...(dropped > 0 ? [`${dropped.toLocaleString('en-US')} dropped`] : []),
      ...(dlq > 0 ? [count(dlq, 'dead letter')] : []),
      ...(failed > 0 ? [`${failed.toLocaleString('en-US')} failed`] : []),
    ]
    return `${view_name} v${view_version}${losses.length === 0 ? '' : ` (${losses.join(', ')})`}`
  })
  const more = views.length - named.length
  return [...named, ...(more > 0 ? [count(more, 'more view')] : [])].join(', ')
}

function count(number: number, noun: string): string {
  return `${number.toLocaleString('en-US')} ${noun}${number === 1 ? '' : 's'}`
}
