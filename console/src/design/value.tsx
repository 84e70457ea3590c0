import style from './value.module.css'

/** Characters that fit into a cell, roughly, and the most that are drawn. */
const charsShown = 50
const charsMax = 200
const hoverCharsMax = 4_000

/** A value of a row, in one line: a long one is cut in its cell, and whole on hover. */
export function Value({ value }: { readonly value: unknown }) {
  if (value === null || value === undefined) return <span className={style.null}>NULL</span>
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  if (text.length <= charsShown) return <span className={style.value}>{text}</span>
  return (
    <span className={style.value} title={text.slice(0, hoverCharsMax)}>
      {text.length <= charsMax ? text : `${text.slice(0, charsMax)}…`}
    </span>
  )
}

/** The head of a column of values. */
export function ColumnHead({ name, type }: { readonly name: string; readonly type: string }) {
  return (
    <>
      {name} <span className={style.type}>{type}</span>
    </>
  )
}

/** Whether values of a type are compared as figures. */
export function isFigure(type: string): boolean {
  return /INT|DOUBLE|FLOAT|DECIMAL/.test(type) && !type.endsWith(']')
}
