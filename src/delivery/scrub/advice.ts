/** Advice for each kind of finding. Inlet does none of it by itself. */
import { isMarkerKind, parseArtifactKind } from '#model/artifact.ts'
import type { FindingKind } from '#model/scrub.ts'

/** For a quarantined segment that is an empty file. */
export const emptyFileAdvice = 'nothing of it is left: look at the reason, then discard the file (inlet segments discard)'

const bringBack = 'bring the object back, from a version or a copy of the bucket'

const nextSteps: Readonly<Record<Exclude<FindingKind, 'file_missing' | 'file_changed'>, string>> = {
  segment_damaged:
    'put an intact copy in its place, if there is one; otherwise its delivery keeps the original as .quarantine, delivers the intact frames and counts the lost records',
  segment_quarantined:
    'export what is intact (inlet segments export), look at the reason, then discard the file (inlet segments discard)',
  unreadable: 'make it readable for the user that Inlet runs as (run inlet scrub as that user, too), and check the disk',
  missing: 'bring it back, from where it was moved to or from a backup, before Inlet starts again',
  report_damaged: 'nothing: delivery sets the report aside and delivers or adopts its segment again',
  keys_damaged: 'requests whose keys are lost may be stored twice if they are sent again within 24 hours: look for duplicates',
  marker_missing: `${bringBack}: readers that go by markers do not see the files of the segment`,
  marker_changed: `${bringBack}: readers that go by markers may see wrong files`,
  commit_missing: 'record it again from its marker: inlet commits rebuild',
}

/** `kind` is the artifact's, as its commit names it. */
export function nextStepOf(finding: FindingKind, kind?: string): string {
  if (finding === 'marker_missing' && kind !== undefined && !isMarkerKind(kind))
    return `${bringBack}: readers that go by markers need it once the files that were merged are removed`
  if (finding !== 'file_missing' && finding !== 'file_changed') return nextSteps[finding]
  const { type } = parseArtifactKind(kind ?? '') ?? {}
  switch (type) {
    case 'view':
      return `${bringBack}; or publish the view again as a new version and run a backfill, which reads the raw files of the segment`
    case 'dlq':
      return `${bringBack}: a re-drive needs it; or publish the view again as a new version and run a backfill`
    default:
      return `${bringBack}: a backfill needs it; the files of views are not affected`
  }
}
