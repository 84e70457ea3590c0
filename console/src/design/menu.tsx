import { cloneElement, lazy, Suspense, useState } from 'react'
import type { MenuProps } from './menu-parts.tsx'

const parts = () => import('./menu-parts.tsx')
const OpenedMenu = lazy(() => parts().then(({ OpenedMenu: component }) => ({ default: component })))

/** Parts of a menu. They come with its first use: nobody needs them to see the first screen. */
export const MenuItem = lazy(() => parts().then(({ MenuItem: component }) => ({ default: component })))
export const MenuLabel = lazy(() => parts().then(({ MenuLabel: component }) => ({ default: component })))
export const MenuSeparator = lazy(() => parts().then(({ MenuSeparator: component }) => ({ default: component })))

/** A list of actions behind a button. */
export function Menu(props: MenuProps) {
  const [isUsed, setUsed] = useState(false)
  const button = cloneElement<Record<string, unknown>>(props.trigger as never, {
    'aria-haspopup': 'menu',
    'aria-expanded': false,
    onClick: () => setUsed(true),
  })
  return isUsed ? (
    <Suspense fallback={button}>
      <OpenedMenu {...props} />
    </Suspense>
  ) : (
    button
  )
}
