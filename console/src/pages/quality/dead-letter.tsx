import type { DlqRecord } from '../../api/dead-letters.ts'
import type { ViewDetail } from '../../api/views.ts'
import { Callout } from '../../design/callout.tsx'
import { CopyButton } from '../../design/copy-button.tsx'
import { Card, Facts } from '../../design/layout.tsx'
import { Time } from '../../design/time.tsx'
import { OpenAsSample } from './open-as-sample.tsx'
import style from './quality.module.css'
import { reasonWords } from './reason-words.ts'
import { recordLines } from './record-lines.ts'

/** A rejected record: what is wrong, where it stands in the record, and where the record came from. */
export function DeadLetter({ letter, view }: { readonly letter: DlqRecord; readonly view: ViewDetail }) {
  const column = view.definition.columns.find(({ name }) => name === letter.column)
  const { record, record_base64, is_cut } = letter
  const lines = record === null ? undefined : recordLines(record, column?.path ?? null)
  const isFound = lines?.some(({ isMarked }) => isMarked) === true
  return (
    <Card>
      <div className={style.panel}>
        <Callout kind="warn" title={reasonWords(letter.error_code)}>
          <p>{letter.message}</p>
        </Callout>
        {column !== undefined && (
          <Facts
            facts={[
              ['Column', <strong key="name">{column.name}</strong>],
              ['Type', <code key="type">{column.type}</code>],
              [
                column.path === undefined ? 'Value' : 'Path',
                <span key="path">
                  <code>{column.path ?? column.value}</code>
                  {column.path !== undefined && !isFound && lines !== undefined && (
                    <span className={style.soft}> (nothing there)</span>
                  )}
                </span>,
              ],
            ]}
          />
        )}
        <figure className={style.record}>
          <figcaption className={style.between}>
            {is_cut ? 'The first part of the record' : 'Record'}
            <CopyButton text={record ?? record_base64 ?? ''} />
          </figcaption>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable with the keyboard */}
          <pre className={style.lines} tabIndex={0}>
            {lines === undefined
              ? (record ?? `base64 ${record_base64}`)
              : lines.map(({ text, isMarked }, number) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: lines never move
                  <span key={number} className={style.line} data-marked={isMarked || undefined}>
                    {isMarked ? <mark>{text}</mark> : text}
                    {'\n'}
                  </span>
                ))}
          </pre>
        </figure>
        {record !== null && !is_cut && <OpenAsSample view={view} record={record} />}
        <Facts facts={originOf(letter)} />
      </div>
    </Card>
  )
}

function originOf({ item, ingested_at, protocol, topic, client_id, segment_seq, record_index }: DlqRecord) {
  return [
    ...(item === null ? [] : [['Element', <code key="item">{item}</code>] as const]),
    ['Received', <Time key="at" at={ingested_at} exact />],
    ['By', topic === null ? protocol : `${protocol}, topic ${topic}`],
    ...(client_id === null ? [] : [['Client', <code key="client">{client_id}</code>] as const]),
    [
      'Segment and position',
      <code key="place">
        {segment_seq}:{record_index}
      </code>,
    ],
  ] as const
}
