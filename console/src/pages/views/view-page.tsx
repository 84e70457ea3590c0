import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { nameOfActor, peopleQuery } from '../../api/people.ts'
import type { Definition, ViewDetail } from '../../api/views.ts'
import { Badge } from '../../design/badge.tsx'
import { Section } from '../../design/layout.tsx'
import { StatusBadge } from '../../design/status-badge.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { useAccount } from '../../shell/session.tsx'
import { ViewFrame } from './view-frame.tsx'
import style from './views.module.css'

const route = getRouteApi('/signed-in/in/$account/views/$view')

/** The definition of one version, and the other versions. */
export function ViewPage() {
  const { view: id } = route.useParams()
  return (
    <ViewFrame id={id}>
      {(view) => (
        <>
          <DefinitionTables definition={view.definition} />
          <Versions view={view} />
        </>
      )}
    </ViewFrame>
  )
}

/** Tells which rows there are, and where they are. */
function rowsOf({ expand, dedupe_by, dedupe_within, partition_by, sort_by }: Definition): string | undefined {
  const parts = [
    expand && `Each element of ${expand} is a row: its values are at $item.`,
    dedupe_by &&
      `Of rows with the same ${dedupe_by.join(', ')}, the first ${dedupe_within === undefined ? 'of a segment' : `within ${dedupe_within}, on one node,`} is written.`,
    partition_by && `Files are in folders by ${partition_by.join(', ')}.`,
    sort_by && `Rows are sorted by ${sort_by.join(', ')}.`,
  ].filter((part) => part !== undefined)
  return parts.length === 0 ? undefined : parts.join(' ')
}

function DefinitionTables({ definition }: { readonly definition: Definition }) {
  const { columns, filters = [] } = definition
  return (
    <>
      <Section title="Columns" about={rowsOf(definition)}>
        <Table label="Columns" columns={columnColumns} rows={columns} keyOf={({ name }) => name} />
      </Section>
      {filters.length > 0 && (
        <Section title="Filters" about="A record must pass all of them. Others are dropped.">
          <Table label="Filters" columns={filterColumns} rows={filters} keyOf={({ condition }) => condition} />
        </Section>
      )}
    </>
  )
}

const columnColumns: readonly TableColumn<Definition['columns'][number]>[] = [
  {
    title: 'Name',
    cell: ({ name, hidden }) => (
      <>
        <strong className={style.name}>{name}</strong> {hidden === true && <Badge>hidden</Badge>}
      </>
    ),
  },
  { title: 'Type', cell: ({ type }) => <code>{type}</code> },
  { title: 'Path or value', cell: ({ path, value }) => <code>{path ?? value}</code> },
  {
    title: 'Without a value',
    cell: ({ required }) => (required === true ? <Badge tone="note">dead letter</Badge> : 'NULL'),
    minor: true,
  },
  {
    title: 'Failed cast',
    cell: ({ required, cast_failures }) =>
      required === true || cast_failures === 'dlq' ? <Badge tone="note">dead letter</Badge> : 'NULL',
    minor: true,
  },
]

const filterColumns: readonly TableColumn<NonNullable<Definition['filters']>[number]>[] = [
  { title: 'Condition', cell: ({ condition }) => <code>{condition}</code> },
  { title: 'Description', cell: ({ description }) => description },
]

function Versions({ view }: { readonly view: ViewDetail }) {
  const account = useAccount()
  const people = useQuery(peopleQuery(account))
  const columns: readonly TableColumn<ViewDetail['versions'][number]>[] = [
    {
      title: 'Version',
      cell: ({ id, version }) =>
        id === view.id ? (
          <strong className={style.name}>v{version}</strong>
        ) : (
          <Link to="/in/$account/views/$view" params={{ account, view: id }}>
            v{version}
          </Link>
        ),
    },
    { title: 'Status', cell: ({ status }) => <StatusBadge status={status} /> },
    { title: 'Published', cell: ({ published_at }) => (published_at === null ? 'not yet' : <Time at={published_at} />) },
    { title: 'Created by', cell: ({ created_by }) => nameOfActor(people.data, created_by), minor: true },
  ]
  return (
    <Section title="Versions">
      <Table
        label="Versions"
        columns={columns}
        rows={view.versions.toSorted((a, b) => b.version - a.version)}
        keyOf={({ id }) => id}
      />
    </Section>
  )
}
