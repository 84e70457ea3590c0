import type { SuggestedColumn, Suggestion } from '../../api/view-trials.ts'
import type { Definition } from '../../api/views.ts'
import { Button } from '../../design/button.tsx'
import { formatShare } from '../../design/format.ts'
import { Section } from '../../design/layout.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { columnsToAdd, notesOf } from './columns-to-add.ts'
import style from './views.module.css'

type MissingColumnsProps = {
  readonly suggestion: Suggestion
  readonly definition: Definition | undefined
  readonly onAdd: (columns: Definition['columns']) => void
}

/** Paths in the samples that no column reads, each with the column that would read it. */
export function MissingColumns({ suggestion, definition, onAdd }: MissingColumnsProps) {
  const missing = columnsToAdd(suggestion, definition)
  const notes = notesOf(suggestion)
  const stats = new Map(suggestion.columns.map((column) => [column.path, column]))
  if (missing.length === 0) return null
  const columns: readonly TableColumn<Definition['columns'][number]>[] = [
    { title: 'Path', cell: ({ path }) => <code>{path}</code> },
    {
      title: 'Type',
      cell: ({ type, path = '' }) => (
        <>
          <code>{type}</code>
          {notes.has(path) && <div className={style.quiet}>{notes.get(path)}</div>}
        </>
      ),
    },
    { title: 'Seen', cell: ({ path = '' }) => seen(stats.get(path), suggestion.sample_count), figure: true },
    {
      title: '',
      figure: true,
      cell: (column) => (
        <Button size="small" aria-label={`Add column ${column.name}`} onClick={() => onAdd([column])}>
          Add column
        </Button>
      ),
    },
  ]
  return (
    <Section
      title="Paths without a column"
      about="The samples have values there that the definition does not take."
      actions={
        <Button size="small" onClick={() => onAdd(missing)}>
          Add all {missing.length}
        </Button>
      }
    >
      <div className={style.bounded}>
        <Table label="Paths without a column" columns={columns} rows={missing} keyOf={({ name }) => name} />
      </div>
    </Section>
  )
}

function seen(column: SuggestedColumn | undefined, samples: number): string {
  return column === undefined || samples === 0 ? '–' : formatShare(column.found / samples)
}
