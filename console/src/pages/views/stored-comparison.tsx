import { useMutation } from '@tanstack/react-query'
import {
  type Compared,
  type ComparedColumn,
  compareView,
  type OutcomeChange,
  type RowChange,
  type ViewComparison,
} from '../../api/view-comparisons.ts'
import { Badge } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { Callout } from '../../design/callout.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { formatCount } from '../../design/format.ts'
import { Section } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Value } from '../../design/value.tsx'
import { Failure } from '../../shell/failure.tsx'
import {
  aboutMatching,
  aboutSample,
  aboutUnread,
  aboutWindow,
  type ColumnState,
  type CountRow,
  countOfRows,
  countRows,
  reasonOfDrop,
  signed,
  stateOf,
  titleOfChange,
  titleOfRowChange,
} from './compared-counts.ts'
import style from './views.module.css'

type StoredComparisonProps = {
  readonly viewId: string
  /** The changed definition, or the versions to compare. */
  readonly compared: Compared
  readonly about: string
}

/** Runs a change over records of the last day, beside a published version, when somebody asks for it: that reads files from the bucket. */
export function StoredComparison({ viewId, compared, about }: StoredComparisonProps) {
  const compare = useMutation({ mutationFn: (body: Compared) => compareView(viewId, body) })
  const isOlder = compare.data !== undefined && JSON.stringify(compare.variables) !== JSON.stringify(compared)
  return (
    <Section
      title="On stored records"
      about={about}
      actions={
        <Button busy={compare.isPending} onClick={() => compare.mutate(compared)}>
          Compare with stored records
        </Button>
      }
    >
      {compare.isError && <Failure error={compare.error} />}
      {compare.isPending && <Skeleton rows={4} height="figure" />}
      {compare.isIdle && (
        <EmptyState title="Not compared yet">
          <p>Rows, dead letters, NULLs and columns of both stand here, with samples of the records that differ.</p>
        </EmptyState>
      )}
      {compare.data !== undefined && (
        <div className={style.panel} aria-live="polite">
          {isOlder && (
            <Callout kind="note" title="The definition has changed since">
              <p>Compare again to see what it makes of the records now.</p>
            </Callout>
          )}
          <Outcome comparison={compare.data} />
        </div>
      )}
    </Section>
  )
}

function Outcome({ comparison }: { readonly comparison: ViewComparison }) {
  const { before, after, outcome_changes, row_changes, columns, is_same, records_read, endpoints } = comparison
  const placeOf = (record: Sample) => {
    const item = 'item_index' in record && record.item_index !== null ? `:${record.item_index}` : ''
    return `${endpoints.find(({ endpoint_id }) => endpoint_id === record.endpoint_id)?.endpoint_name ?? ''} ${record.segment_seq}:${record.record_index}${item}`
  }
  const unmatched = aboutMatching(comparison)
  const unread = aboutUnread(comparison)
  const window = aboutWindow(comparison)
  return (
    <>
      <p className={style.quiet}>{aboutSample(comparison)}</p>
      {unread !== undefined && (
        <Callout kind="warn" title="Some files cannot be read">
          <p>Left out: {unread}.</p>
        </Callout>
      )}
      {is_same && records_read > 0 && (
        <Callout kind="good" title="Both make the same of these records">
          <p>Every record has the same outcome, and each column the same values.</p>
        </Callout>
      )}
      <Table
        label="Counts on stored records"
        columns={countColumns(
          `Version ${before.version}`,
          after.version === null ? 'This definition' : `Version ${after.version}`,
        )}
        rows={countRows(before, after)}
        keyOf={({ name }) => name}
      />
      {window !== undefined && <p className={style.quiet}>{window}</p>}
      {unmatched !== undefined && (
        <Callout kind="note" title="Values are not compared">
          <p>{unmatched}</p>
        </Callout>
      )}
      <Table label="Columns on stored records" columns={columnColumns} rows={columns} keyOf={({ name }) => name} />
      {outcome_changes.map((change) => (
        <Section key={`${change.before} ${change.after}`} title={titleOfChange(change)}>
          <Table label={titleOfChange(change)} columns={changeColumns(placeOf)} rows={change.samples} keyOf={placeOf} />
        </Section>
      ))}
      {row_changes.map((change) => (
        <Section key={change.change} title={titleOfRowChange(change)}>
          <Table label={titleOfRowChange(change)} columns={rowColumns(placeOf)} rows={change.samples} keyOf={placeOf} />
        </Section>
      ))}
      {columns
        .filter(({ samples }) => samples.length > 0)
        .map((column) => (
          <Section key={column.name} title={`${countOfRows(column.values_differ ?? 0)}: another value in ${column.name}`}>
            <Table
              label={`Values of ${column.name} that differ`}
              columns={valueColumns(placeOf)}
              rows={column.samples}
              keyOf={placeOf}
            />
          </Section>
        ))}
    </>
  )
}

type Sample = OutcomeChange['samples'][number] | RowChange['samples'][number] | ComparedColumn['samples'][number]
type PlaceOf = (sample: Sample) => string

const countColumns = (before: string, after: string): readonly TableColumn<CountRow>[] => [
  { title: '', cell: ({ name }) => <span className={style.name}>{name}</span> },
  { title: before, figure: true, cell: ({ before: count }) => formatCount(count) },
  { title: after, figure: true, cell: ({ after: count }) => formatCount(count) },
  {
    title: 'Difference',
    figure: true,
    cell: ({ before: one, after: other, isLoss }) =>
      isLoss && other > one ? <Badge tone="warn">{signed(other - one)}</Badge> : signed(other - one),
  },
]

const tones: Readonly<Record<Exclude<ColumnState, 'same'>, 'good' | 'warn' | 'note'>> = {
  new: 'good',
  lost: 'warn',
  changed: 'note',
}

const columnColumns: readonly TableColumn<ComparedColumn>[] = [
  {
    title: 'Column',
    cell: (column) => {
      const state = stateOf(column)
      return (
        <span className={style.tags}>
          <strong className={style.name}>{column.name}</strong>
          {state !== 'same' && <Badge tone={tones[state]}>{state}</Badge>}
        </span>
      )
    },
  },
  {
    title: 'Type',
    cell: ({ before, after }) => (
      <code>
        {before === null || after === null || before.type === after.type
          ? (after ?? before)?.type
          : `${before.type} → ${after.type}`}
      </code>
    ),
  },
  { title: 'NULL before', figure: true, cell: ({ before }) => (before === null ? '–' : `${before.null_rate_pct} %`) },
  { title: 'NULL now', figure: true, cell: ({ after }) => (after === null ? '–' : `${after.null_rate_pct} %`) },
  {
    title: 'Other values',
    figure: true,
    cell: ({ values_differ }) => (values_differ === null ? '–' : formatCount(values_differ)),
  },
]

function changeColumns(placeOf: PlaceOf): readonly TableColumn<OutcomeChange['samples'][number]>[] {
  return [
    { title: 'Record', cell: (sample) => <RecordCell sample={sample} /> },
    {
      title: 'Reason',
      cell: ({ reason_before, reason_after, dropped_by }) => (
        <span className={style.reason}>{(reason_after ?? reason_before)?.message ?? reasonOfDrop(dropped_by)}</span>
      ),
    },
    { title: 'Segment and position', cell: (sample) => <code>{placeOf(sample)}</code>, minor: true },
  ]
}

function rowColumns(placeOf: PlaceOf): readonly TableColumn<RowChange['samples'][number]>[] {
  return [
    { title: 'Record', cell: (sample) => <RecordCell sample={sample} /> },
    { title: 'Left out as', cell: ({ dropped_by }) => reasonOfDrop(dropped_by) },
    { title: 'Segment, position and element', cell: (sample) => <code>{placeOf(sample)}</code>, minor: true },
  ]
}

function valueColumns(placeOf: PlaceOf): readonly TableColumn<ComparedColumn['samples'][number]>[] {
  return [
    { title: 'Before', cell: ({ value_before }) => <Value value={value_before} /> },
    { title: 'Now', cell: ({ value_after }) => <Value value={value_after} /> },
    { title: 'Record', cell: (sample) => <RecordCell sample={sample} />, minor: true },
    { title: 'Segment and position', cell: (sample) => <code>{placeOf(sample)}</code>, minor: true },
  ]
}

function RecordCell({ sample: { record, record_base64 } }: { readonly sample: Sample }) {
  return (
    <code>
      <Value value={record ?? `base64 ${record_base64}`} />
    </code>
  )
}
