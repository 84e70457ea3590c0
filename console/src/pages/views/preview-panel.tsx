import type { PreviewColumn, PreviewIssue, PreviewItem, PreviewResult } from '../../api/view-trials.ts'
import { Badge } from '../../design/badge.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { formatCount, formatDuration, formatShare } from '../../design/format.ts'
import { Section } from '../../design/layout.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { ColumnHead, isFigure, Value } from '../../design/value.tsx'
import { Failure } from '../../shell/failure.tsx'
import type { LivePreview } from './use-preview.ts'
import style from './views.module.css'

/** Values that the columns take from the samples, shown beside the definition. */
export function ColumnsPreview({ preview }: { readonly preview: LivePreview }) {
  const { result, isWorking, error, retry, problems } = preview
  return (
    <div className={style.panel} aria-busy={isWorking}>
      {error !== null && <Failure error={error} onRetry={retry} />}
      {result === undefined ? (
        <NoPreview preview={preview} />
      ) : (
        <>
          <Outcome result={result} stale={problems.length > 0} />
          <Table label="Columns on these samples" columns={columns} rows={result.columns} keyOf={({ name }) => name} />
        </>
      )}
    </div>
  )
}

function NoPreview({ preview: { missing, problems } }: { readonly preview: LivePreview }) {
  if (missing === 'samples')
    return (
      <EmptyState title="The preview needs samples">
        <p>Paste a few records below. Each column shows its values and how often it is NULL, while you type.</p>
      </EmptyState>
    )
  if (problems.length > 0)
    return (
      <EmptyState title="The definition has errors">
        <p>Each column shows its values and how often it is NULL once the definition can be compiled.</p>
      </EmptyState>
    )
  if (missing === undefined) return null
  return (
    <EmptyState title="The preview needs a definition">
      <p>Write columns here, or take those that Inlet suggests for the samples below.</p>
    </EmptyState>
  )
}

function Outcome({
  result: { counts, items, rowCount, executionTimeMs },
  stale,
}: {
  readonly result: PreviewResult
  readonly stale: boolean
}) {
  return (
    <p className={style.outcome} aria-live="polite">
      <Badge tone={counts.accepted > 0 ? 'good' : 'none'}>{formatCount(counts.accepted)} accepted</Badge>
      {items !== undefined && <Badge tone={rowCount > 0 ? 'good' : 'none'}>{formatCount(rowCount)} rows</Badge>}
      <Badge>{formatCount(counts.dropped)} dropped</Badge>
      {counts.duplicates > 0 && <Badge>{formatCount(counts.duplicates)} duplicates</Badge>}
      <Badge tone={counts.dlq > 0 ? 'warn' : 'none'}>{formatCount(counts.dlq)} dead letters</Badge>
      {counts.failed > 0 && <Badge tone="bad">{formatCount(counts.failed)} failed</Badge>}
      <span className={style.quiet}>{stale ? 'before the last change' : `in ${formatDuration(executionTimeMs)}`}</span>
    </p>
  )
}

const columns: readonly TableColumn<PreviewColumn>[] = [
  { title: 'Column', cell: ({ name }) => <strong className={style.name}>{name}</strong> },
  { title: 'Type', cell: ({ type }) => <code>{type}</code> },
  {
    title: 'NULL',
    figure: true,
    cell: ({ nullRate, totalCount }) =>
      totalCount === 0 ? '–' : nullRate === 1 ? <Badge tone="warn">always</Badge> : formatShare(nullRate),
  },
  {
    title: 'Values',
    cell: ({ sampleValues }) => <code className={style.values}>{sampleValues.slice(0, 3).map(textOf).join('  ')}</code>,
    minor: true,
  },
]

/** The rows as they would stand in Parquet, and what happened to the other samples. */
export function RowsPreview({ result }: { readonly result: PreviewResult }) {
  const issues = [...result.errors, ...result.warnings]
  return (
    <>
      {issues.length > 0 && (
        <Section title="What needs attention" about="Dead letters, values that became NULL, and warnings of the compiler.">
          <Table label="Issues" columns={issueColumns(result.errors.length)} rows={numbered(issues)} keyOf={({ row }) => row} />
        </Section>
      )}
      <Section title="Rows" about="The accepted samples, as they would be in Parquet.">
        <Table
          label="Rows"
          columns={result.columns.map(({ name, type }) => ({
            title: <ColumnHead name={name} type={type} />,
            figure: isFigure(type),
            cell: ({ values }: { readonly values: Readonly<Record<string, unknown>> }) => <Value value={values[name]} />,
          }))}
          rows={result.rows.map((values, row) => ({ row, values }))}
          keyOf={({ row }) => row}
          empty={<EmptyState title="No sample is accepted" />}
        />
      </Section>
      {result.items !== undefined && (
        <Section title="Elements" about="What became of each element: an error in one refuses its whole sample.">
          <Table
            label="Elements"
            columns={itemColumns}
            rows={result.items}
            keyOf={({ sample_index, item }) => `${sample_index} ${item}`}
            empty={<EmptyState title="No sample has an element at the path of expand" />}
          />
        </Section>
      )}
      <details className={style.details}>
        <summary>SQL that delivery runs</summary>
        <CodeBlock label="DuckDB" code={result.compiledSql} wrap />
      </details>
    </>
  )
}

const tones = { accepted: 'good', dropped: 'none', dlq: 'warn' } as const
const outcomeNames = { accepted: 'accepted', dropped: 'dropped', dlq: 'dead letter' } as const

const itemColumns: readonly TableColumn<PreviewItem>[] = [
  { title: 'Sample', cell: ({ sample_index }) => formatCount(sample_index + 1), figure: true },
  { title: 'Element', cell: ({ item }) => <code>{item}</code> },
  { title: 'Outcome', cell: ({ outcome }) => <Badge tone={tones[outcome]}>{outcomeNames[outcome]}</Badge> },
  { title: 'Row', cell: ({ row }) => (row === null ? '–' : formatCount(row + 1)), figure: true },
  {
    title: 'Error',
    cell: ({ outcome, error_code, column }) =>
      error_code !== null ? (
        <>
          <Badge tone="bad">{error_code}</Badge> <strong className={style.name}>{column}</strong>
        </>
      ) : outcome === 'dlq' ? (
        'in another element of the sample'
      ) : (
        '–'
      ),
  },
]

type NumberedIssue = PreviewIssue & { readonly row: number }

function numbered(issues: readonly PreviewIssue[]): readonly NumberedIssue[] {
  return issues.map((issue, row) => ({ ...issue, row }))
}

/** Errors come first. */
function issueColumns(errors: number): readonly TableColumn<NumberedIssue>[] {
  return [
    {
      title: 'Sample',
      cell: ({ sample_index }) => (sample_index === null ? 'all' : formatCount(sample_index + 1)),
      figure: true,
    },
    { title: 'Column', cell: ({ column }) => (column === null ? '–' : <strong className={style.name}>{column}</strong>) },
    { title: 'Code', cell: ({ code, row }) => <Badge tone={row < errors ? 'bad' : 'warn'}>{code}</Badge>, minor: true },
    { title: 'Message', cell: ({ message }) => message },
  ]
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
