import type { Completion } from '@codemirror/autocomplete'
import { sql } from '@codemirror/lang-sql'
import { type ComponentProps, useMemo } from 'react'
import { identifier, type QueryTable } from '../../api/query.ts'
import { CodeEditor } from '../../editor/code-editor.tsx'
import { duckdb } from './duckdb-dialect.ts'

type SqlEditorProps = Pick<ComponentProps<typeof CodeEditor>, 'value' | 'onChange' | 'onRun' | 'problems'> & {
  /** Completed as one types. */
  readonly tables: readonly QueryTable[]
}

/** Quotes a name that DuckDB takes for a word of its own. */
function completionOf({ name }: QueryTable['columns'][number]): Completion {
  return { label: name, type: 'property', apply: identifier(name) }
}

/** A box for one statement. */
export function SqlEditor({ tables, ...rest }: SqlEditorProps) {
  const language = useMemo(() => {
    const schema = Object.fromEntries(tables.map(({ name, columns }) => [name, columns.map(completionOf)]))
    return sql({ dialect: duckdb, schema, upperCaseKeywords: true })
  }, [tables])
  return <CodeEditor label="SQL" look="box" hint="SELECT …" language={language} {...rest} />
}
