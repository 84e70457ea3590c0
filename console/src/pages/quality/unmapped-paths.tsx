import { useState } from 'react'
import type { UnmappedPath } from '../../api/view-metrics.ts'
import type { ViewDetail } from '../../api/views.ts'
import { Badge } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { formatCount, formatShare } from '../../design/format.ts'
import { Inline, Section } from '../../design/layout.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { useMay } from '../../shell/session.tsx'
import { AddColumn } from './add-column.tsx'
import { isWhole } from './proposed-column.ts'

type UnmappedPathsProps = { readonly view: ViewDetail | undefined; readonly paths: readonly UnmappedPath[] }

/** Parts of the records that no column reads. */
export function UnmappedPaths({ view, paths }: UnmappedPathsProps) {
  const mayAdd = useMay('member')
  const [added, setAdded] = useState<UnmappedPath>()
  if (paths.length === 0) return null
  const add: TableColumn<UnmappedPath> = {
    title: '',
    cell: (path) =>
      isWhole(path) && (
        <Button size="small" aria-label={`Add as column: ${path.path}`} onClick={() => setAdded(path)}>
          Add as column
        </Button>
      ),
    figure: true,
  }
  return (
    <Section
      title="Paths without a column"
      about="Sampled records of the last 24 hours have values there that this version does not read. A new field shows up here first."
    >
      <Table
        label="Paths without a column"
        columns={mayAdd && view !== undefined ? [...columns, add] : columns}
        rows={paths}
        keyOf={({ path }) => path}
      />
      {view !== undefined && added !== undefined && <AddColumn view={view} path={added} onClose={() => setAdded(undefined)} />}
    </Section>
  )
}

const columns: readonly TableColumn<UnmappedPath>[] = [
  { title: 'Path', cell: ({ path }) => <code>{path}</code> },
  {
    title: 'Kinds',
    minor: true,
    cell: ({ types }) => (
      <Inline>
        {types.map((type) => (
          <Badge key={type}>{type}</Badge>
        ))}
      </Inline>
    ),
  },
  {
    title: 'Seen in',
    cell: ({ records, sampled_records, seen_pct }) => (
      <span title={`${formatCount(records)} of ${formatCount(sampled_records)} sampled records`}>
        {formatShare(seen_pct / 100)}
      </span>
    ),
    figure: true,
  },
  { title: 'Last seen', cell: ({ last_seen_at }) => <Time at={last_seen_at} />, minor: true },
]
